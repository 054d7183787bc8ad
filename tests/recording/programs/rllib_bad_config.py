"""RLlib: the settings of an algorithm contradict each other."""

from ray.rllib.algorithms.ppo import PPOConfig

config = (
    PPOConfig()
    .environment("CartPole-v1")
    .env_runners(num_env_runners=1)
    .training(train_batch_size_per_learner=100, minibatch_size=400)
)
algorithm = config.build_algo()
print(algorithm.train())
