"""A task asks for a GPU, and no node has one."""

import ray

ray.init()


@ray.remote
def tokenize(part):
    return len(part)


@ray.remote(num_gpus=1)
def finetune(tokens):
    return tokens / 2


tokens = sum(ray.get([tokenize.remote("word " * n) for n in range(20)]))
print("loss", ray.get(finetune.remote(tokens), timeout=20))
