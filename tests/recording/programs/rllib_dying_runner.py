"""RLlib: the simulator takes the process of an env runner down."""

import os
import sys

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig


class Simulator(gym.Env):
    def __init__(self, config=None):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 15:
            print("mujoco: Nan, Inf or huge value in QACC at DOF 0", file=sys.stderr, flush=True)
            os._exit(11)
        return np.zeros(2, np.float32), 1.0, self.steps > 30, False, {}


config = (
    PPOConfig()
    .environment(Simulator)
    .env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5, rollout_fragment_length=50)
    .fault_tolerance(restart_failed_env_runners=False)
    .training(train_batch_size_per_learner=100, minibatch_size=50, num_epochs=1)
    .learners(num_learners=0)
)
algorithm = config.build_algo()
print(algorithm.train()["env_runners"])
