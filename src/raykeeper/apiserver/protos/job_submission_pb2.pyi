from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SubmitRayJobRequest(_message.Message):
    __slots__ = ("namespace", "clustername", "jobsubmission")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    JOBSUBMISSION_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    jobsubmission: RayJobSubmission
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ..., jobsubmission: _Optional[_Union[RayJobSubmission, _Mapping]] = ...) -> None: ...

class SubmitRayJobReply(_message.Message):
    __slots__ = ("submission_id",)
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    submission_id: str
    def __init__(self, submission_id: _Optional[str] = ...) -> None: ...

class GetJobDetailsRequest(_message.Message):
    __slots__ = ("namespace", "clustername", "submissionid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSIONID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    submissionid: str
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ..., submissionid: _Optional[str] = ...) -> None: ...

class GetJobLogRequest(_message.Message):
    __slots__ = ("namespace", "clustername", "submissionid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSIONID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    submissionid: str
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ..., submissionid: _Optional[str] = ...) -> None: ...

class GetJobLogReply(_message.Message):
    __slots__ = ("log",)
    LOG_FIELD_NUMBER: _ClassVar[int]
    log: str
    def __init__(self, log: _Optional[str] = ...) -> None: ...

class ListJobDetailsRequest(_message.Message):
    __slots__ = ("namespace", "clustername")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ...) -> None: ...

class ListJobSubmissionInfo(_message.Message):
    __slots__ = ("submissions",)
    SUBMISSIONS_FIELD_NUMBER: _ClassVar[int]
    submissions: _containers.RepeatedCompositeFieldContainer[JobSubmissionInfo]
    def __init__(self, submissions: _Optional[_Iterable[_Union[JobSubmissionInfo, _Mapping]]] = ...) -> None: ...

class StopRayJobSubmissionRequest(_message.Message):
    __slots__ = ("namespace", "clustername", "submissionid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSIONID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    submissionid: str
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ..., submissionid: _Optional[str] = ...) -> None: ...

class DeleteRayJobSubmissionRequest(_message.Message):
    __slots__ = ("namespace", "clustername", "submissionid")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERNAME_FIELD_NUMBER: _ClassVar[int]
    SUBMISSIONID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    clustername: str
    submissionid: str
    def __init__(self, namespace: _Optional[str] = ..., clustername: _Optional[str] = ..., submissionid: _Optional[str] = ...) -> None: ...

class RayJobSubmission(_message.Message):
    __slots__ = ("entrypoint", "submission_id", "metadata", "runtime_env", "entrypoint_num_cpus", "entrypoint_num_gpus", "entrypoint_resources")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EntrypointResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ENTRYPOINT_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ENV_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINT_NUM_CPUS_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINT_NUM_GPUS_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINT_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    entrypoint: str
    submission_id: str
    metadata: _containers.ScalarMap[str, str]
    runtime_env: str
    entrypoint_num_cpus: float
    entrypoint_num_gpus: float
    entrypoint_resources: _containers.ScalarMap[str, str]
    def __init__(self, entrypoint: _Optional[str] = ..., submission_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., runtime_env: _Optional[str] = ..., entrypoint_num_cpus: _Optional[float] = ..., entrypoint_num_gpus: _Optional[float] = ..., entrypoint_resources: _Optional[_Mapping[str, str]] = ...) -> None: ...

class JobSubmissionInfo(_message.Message):
    __slots__ = ("entrypoint", "job_id", "submission_id", "status", "message", "error_type", "start_time", "end_time", "metadata", "runtime_env")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RuntimeEnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ENTRYPOINT_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SUBMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ENV_FIELD_NUMBER: _ClassVar[int]
    entrypoint: str
    job_id: str
    submission_id: str
    status: str
    message: str
    error_type: str
    start_time: int
    end_time: int
    metadata: _containers.ScalarMap[str, str]
    runtime_env: _containers.ScalarMap[str, str]
    def __init__(self, entrypoint: _Optional[str] = ..., job_id: _Optional[str] = ..., submission_id: _Optional[str] = ..., status: _Optional[str] = ..., message: _Optional[str] = ..., error_type: _Optional[str] = ..., start_time: _Optional[int] = ..., end_time: _Optional[int] = ..., metadata: _Optional[_Mapping[str, str]] = ..., runtime_env: _Optional[_Mapping[str, str]] = ...) -> None: ...
