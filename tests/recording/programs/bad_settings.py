"""Settings of the job do not validate: the message has several lines."""

import ray
from pydantic import BaseModel, Field


class Settings(BaseModel):
    batch_size: int = Field(gt=0)
    bucket: str


ray.init()


@ray.remote
def run(settings):
    return settings["bucket"]


settings = Settings(batch_size=-4, bucket="lake")
print(ray.get(run.remote(settings.model_dump())))
