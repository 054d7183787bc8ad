"""RLlib: the user's environment gives an observation that is no number of its space."""

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig


class Warehouse(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.stock = [5, 3]

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.steps += 1
        left = self.stock[action * self.steps]
        return np.full(3, left / 10, np.float32), 1.0, self.steps > 20, False, {}


config = (
    PPOConfig()
    .environment(Warehouse)
    .env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5, rollout_fragment_length=50)
    .training(train_batch_size_per_learner=100, minibatch_size=50, num_epochs=1)
    .learners(num_learners=0)
)
algorithm = config.build_algo()
print(algorithm.train()["env_runners"])
