"""Ray Data: the function that makes tensors of batches meets texts of various length."""

import numpy as np
import ray


def collate(batch):
    return np.stack([np.frombuffer(text.encode(), np.uint8) for text in batch["text"]])


ray.init()
texts = ray.data.from_items([{"text": "a" * (number + 3)} for number in range(8)])
for tensor in texts.iter_torch_batches(batch_size=4, collate_fn=collate):
    print(tensor.shape)
