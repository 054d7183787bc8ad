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

class CreateRayServiceRequest(_message.Message):
    __slots__ = ("service", "namespace")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    service: RayService
    namespace: str
    def __init__(self, service: _Optional[_Union[RayService, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class UpdateRayServiceRequest(_message.Message):
    __slots__ = ("service", "namespace", "name")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    service: RayService
    namespace: str
    name: str
    def __init__(self, service: _Optional[_Union[RayService, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetRayServiceRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ListRayServicesRequest(_message.Message):
    __slots__ = ("namespace", "page_token", "page_size")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_token: str
    page_size: int
    def __init__(self, namespace: _Optional[str] = ..., page_token: _Optional[str] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListRayServicesResponse(_message.Message):
    __slots__ = ("services", "total_size", "next_page_token")
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedCompositeFieldContainer[RayService]
    total_size: int
    next_page_token: str
    def __init__(self, services: _Optional[_Iterable[_Union[RayService, _Mapping]]] = ..., total_size: _Optional[int] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListAllRayServicesRequest(_message.Message):
    __slots__ = ("page_token", "page_size")
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    page_token: str
    page_size: int
    def __init__(self, page_token: _Optional[str] = ..., page_size: _Optional[int] = ...) -> None: ...

class ListAllRayServicesResponse(_message.Message):
    __slots__ = ("services", "total_size", "next_page_token")
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedCompositeFieldContainer[RayService]
    total_size: int
    next_page_token: str
    def __init__(self, services: _Optional[_Iterable[_Union[RayService, _Mapping]]] = ..., total_size: _Optional[int] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteRayServiceRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class RayService(_message.Message):
    __slots__ = ("name", "namespace", "user", "version", "serve_config_V2", "service_unhealthy_second_threshold", "deployment_unhealthy_second_threshold", "cluster_spec", "ray_service_status", "created_at", "delete_at", "labels", "annotations", "suspend", "upgrade_strategy", "spec")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
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
    SERVE_CONFIG_V2_FIELD_NUMBER: _ClassVar[int]
    SERVICE_UNHEALTHY_SECOND_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_UNHEALTHY_SECOND_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SPEC_FIELD_NUMBER: _ClassVar[int]
    RAY_SERVICE_STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DELETE_AT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    UPGRADE_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    user: str
    version: str
    serve_config_V2: str
    service_unhealthy_second_threshold: int
    deployment_unhealthy_second_threshold: int
    cluster_spec: _cluster_pb2.ClusterSpec
    ray_service_status: RayServiceStatus
    created_at: _timestamp_pb2.Timestamp
    delete_at: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    suspend: bool
    upgrade_strategy: _struct_pb2.Struct
    spec: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[str] = ..., serve_config_V2: _Optional[str] = ..., service_unhealthy_second_threshold: _Optional[int] = ..., deployment_unhealthy_second_threshold: _Optional[int] = ..., cluster_spec: _Optional[_Union[_cluster_pb2.ClusterSpec, _Mapping]] = ..., ray_service_status: _Optional[_Union[RayServiceStatus, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delete_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., suspend: _Optional[bool] = ..., upgrade_strategy: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RayServiceStatus(_message.Message):
    __slots__ = ("application_status", "application_message", "serve_deployment_status", "ray_service_events", "ray_cluster_name", "ray_cluster_state", "service_endpoint", "serve_application_status")
    class ServiceEndpointEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    APPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SERVE_DEPLOYMENT_STATUS_FIELD_NUMBER: _ClassVar[int]
    RAY_SERVICE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    RAY_CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    RAY_CLUSTER_STATE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    SERVE_APPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    application_status: str
    application_message: str
    serve_deployment_status: _containers.RepeatedCompositeFieldContainer[ServeDeploymentStatus]
    ray_service_events: _containers.RepeatedCompositeFieldContainer[RayServiceEvent]
    ray_cluster_name: str
    ray_cluster_state: str
    service_endpoint: _containers.ScalarMap[str, str]
    serve_application_status: _containers.RepeatedCompositeFieldContainer[ServeApplicationStatus]
    def __init__(self, application_status: _Optional[str] = ..., application_message: _Optional[str] = ..., serve_deployment_status: _Optional[_Iterable[_Union[ServeDeploymentStatus, _Mapping]]] = ..., ray_service_events: _Optional[_Iterable[_Union[RayServiceEvent, _Mapping]]] = ..., ray_cluster_name: _Optional[str] = ..., ray_cluster_state: _Optional[str] = ..., service_endpoint: _Optional[_Mapping[str, str]] = ..., serve_application_status: _Optional[_Iterable[_Union[ServeApplicationStatus, _Mapping]]] = ...) -> None: ...

class ServeApplicationStatus(_message.Message):
    __slots__ = ("name", "status", "message", "serve_deployment_status")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SERVE_DEPLOYMENT_STATUS_FIELD_NUMBER: _ClassVar[int]
    name: str
    status: str
    message: str
    serve_deployment_status: _containers.RepeatedCompositeFieldContainer[ServeDeploymentStatus]
    def __init__(self, name: _Optional[str] = ..., status: _Optional[str] = ..., message: _Optional[str] = ..., serve_deployment_status: _Optional[_Iterable[_Union[ServeDeploymentStatus, _Mapping]]] = ...) -> None: ...

class ServeDeploymentStatus(_message.Message):
    __slots__ = ("deployment_name", "status", "message")
    DEPLOYMENT_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    deployment_name: str
    status: str
    message: str
    def __init__(self, deployment_name: _Optional[str] = ..., status: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class RayServiceEvent(_message.Message):
    __slots__ = ("id", "name", "created_at", "first_timestamp", "last_timestamp", "reason", "message", "type", "count")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    FIRST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    created_at: _timestamp_pb2.Timestamp
    first_timestamp: _timestamp_pb2.Timestamp
    last_timestamp: _timestamp_pb2.Timestamp
    reason: str
    message: str
    type: str
    count: int
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., first_timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., type: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class WorkerGroupUpdateSpec(_message.Message):
    __slots__ = ("group_name", "replicas", "min_replicas", "max_replicas")
    GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    group_name: str
    replicas: int
    min_replicas: int
    max_replicas: int
    def __init__(self, group_name: _Optional[str] = ..., replicas: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ...) -> None: ...
