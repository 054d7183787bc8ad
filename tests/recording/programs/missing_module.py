"""A typo in an import."""

import ray
from sklearnn.ensemble import RandomForestClassifier

ray.init()
print(RandomForestClassifier())
