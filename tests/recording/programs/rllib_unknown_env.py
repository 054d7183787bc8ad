"""RLlib: the environment has a name that nobody registered."""

from ray.rllib.algorithms.ppo import PPOConfig

config = PPOConfig().environment("Warehouse-v7").env_runners(num_env_runners=1)
algorithm = config.build_algo()
print(algorithm.train())
