import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from raykeeper.apiserver.protos import cluster_pb2 as _cluster_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateRayJobRequest(_message.Message):
    __slots__ = ("job", "namespace")
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    job: RayJob
    namespace: str
    def __init__(self, job: _Optional[_Union[RayJob, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class GetRayJobRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ListRayJobsRequest(_message.Message):
    __slots__ = ("namespace", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., limit: _Optional[int] = ..., **kwargs) -> None: ...

class ListRayJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[RayJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[RayJob, _Mapping]]] = ..., **kwargs) -> None: ...

class ListAllRayJobsRequest(_message.Message):
    __slots__ = ("limit",)
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ..., **kwargs) -> None: ...

class ListAllRayJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[RayJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[RayJob, _Mapping]]] = ..., **kwargs) -> None: ...

class DeleteRayJobRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class RayJobSubmitter(_message.Message):
    __slots__ = ("image", "cpu", "memory")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    image: str
    cpu: str
    memory: str
    def __init__(self, image: _Optional[str] = ..., cpu: _Optional[str] = ..., memory: _Optional[str] = ...) -> None: ...

class RayJob(_message.Message):
    __slots__ = ("name", "namespace", "user", "version", "entrypoint", "metadata", "runtime_env", "job_id", "shutdown_after_job_finishes", "cluster_selector", "cluster_spec", "ttl_seconds_after_finished", "jobSubmitter", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources", "activeDeadlineSeconds", "created_at", "delete_at", "job_status", "job_deployment_status", "message", "start_time", "end_time", "ray_cluster_name", "submission_mode", "backoff_limit", "suspend", "deletion_strategy", "labels", "spec")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ClusterSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ENV_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SHUTDOWN_AFTER_JOB_FINISHES_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SPEC_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_AFTER_FINISHED_FIELD_NUMBER: _ClassVar[int]
    JOBSUBMITTER_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINTNUMCPUS_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINTNUMGPUS_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINTRESOURCES_FIELD_NUMBER: _ClassVar[int]
    ACTIVEDEADLINESECONDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DELETE_AT_FIELD_NUMBER: _ClassVar[int]
    JOB_STATUS_FIELD_NUMBER: _ClassVar[int]
    JOB_DEPLOYMENT_STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    RAY_CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_MODE_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    DELETION_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    user: str
    version: str
    entrypoint: str
    metadata: _containers.ScalarMap[str, str]
    runtime_env: str
    job_id: str
    shutdown_after_job_finishes: bool
    cluster_selector: _containers.ScalarMap[str, str]
    cluster_spec: _cluster_pb2.ClusterSpec
    ttl_seconds_after_finished: int
    jobSubmitter: RayJobSubmitter
    entrypointNumCpus: float
    entrypointNumGpus: float
    entrypointResources: str
    activeDeadlineSeconds: int
    created_at: _timestamp_pb2.Timestamp
    delete_at: _timestamp_pb2.Timestamp
    job_status: str
    job_deployment_status: str
    message: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    ray_cluster_name: str
    submission_mode: str
    backoff_limit: int
    suspend: bool
    deletion_strategy: _struct_pb2.Struct
    labels: _containers.ScalarMap[str, str]
    spec: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[str] = ..., entrypoint: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., runtime_env: _Optional[str] = ..., job_id: _Optional[str] = ..., shutdown_after_job_finishes: _Optional[bool] = ..., cluster_selector: _Optional[_Mapping[str, str]] = ..., cluster_spec: _Optional[_Union[_cluster_pb2.ClusterSpec, _Mapping]] = ..., ttl_seconds_after_finished: _Optional[int] = ..., jobSubmitter: _Optional[_Union[RayJobSubmitter, _Mapping]] = ..., entrypointNumCpus: _Optional[float] = ..., entrypointNumGpus: _Optional[float] = ..., entrypointResources: _Optional[str] = ..., activeDeadlineSeconds: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delete_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., job_status: _Optional[str] = ..., job_deployment_status: _Optional[str] = ..., message: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ray_cluster_name: _Optional[str] = ..., submission_mode: _Optional[str] = ..., backoff_limit: _Optional[int] = ..., suspend: _Optional[bool] = ..., deletion_strategy: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...
