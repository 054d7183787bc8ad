"""RLlib under Ray Tune: the environment's reset raises in every trial."""

from tempfile import mkdtemp

import gymnasium as gym
import numpy as np
from ray import tune
from ray.rllib.algorithms.ppo import PPOConfig


class Warehouse(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        shelves = np.zeros(4)
        return shelves.reshape(3, 2).astype(np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}


config = (
    PPOConfig()
    .environment(Warehouse)
    .env_runners(num_env_runners=0)
    .training(train_batch_size_per_learner=100, minibatch_size=50, num_epochs=1)
    .learners(num_learners=0)
)
results = tune.Tuner(
    "PPO",
    param_space=config,
    run_config=tune.RunConfig(storage_path=mkdtemp(prefix="rk-results-"), stop={"training_iteration": 1}),
).fit()
print(results.get_best_result("env_runners/episode_return_mean", "max").metrics)
