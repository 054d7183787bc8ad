import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from raykeeper.apiserver.protos import config_pb2 as _config_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateClusterRequest(_message.Message):
    __slots__ = ("cluster", "namespace")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    cluster: Cluster
    namespace: str
    def __init__(self, cluster: _Optional[_Union[Cluster, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class GetClusterRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ListClustersRequest(_message.Message):
    __slots__ = ("namespace", "limit")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    limit: int
    def __init__(self, namespace: _Optional[str] = ..., limit: _Optional[int] = ..., **kwargs) -> None: ...

class ListClustersResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[Cluster]
    def __init__(self, clusters: _Optional[_Iterable[_Union[Cluster, _Mapping]]] = ..., **kwargs) -> None: ...

class ListAllClustersRequest(_message.Message):
    __slots__ = ("limit",)
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ..., **kwargs) -> None: ...

class ListAllClustersResponse(_message.Message):
    __slots__ = ("clusters",)
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedCompositeFieldContainer[Cluster]
    def __init__(self, clusters: _Optional[_Iterable[_Union[Cluster, _Mapping]]] = ..., **kwargs) -> None: ...

class DeleteClusterRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class EnvValueFrom(_message.Message):
    __slots__ = ("source", "name", "key")
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CONFIGMAP: _ClassVar[EnvValueFrom.Source]
        SECRET: _ClassVar[EnvValueFrom.Source]
        RESOURCEFIELD: _ClassVar[EnvValueFrom.Source]
        FIELD: _ClassVar[EnvValueFrom.Source]
    CONFIGMAP: EnvValueFrom.Source
    SECRET: EnvValueFrom.Source
    RESOURCEFIELD: EnvValueFrom.Source
    FIELD: EnvValueFrom.Source
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    source: EnvValueFrom.Source
    name: str
    key: str
    def __init__(self, source: _Optional[_Union[EnvValueFrom.Source, str]] = ..., name: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class EnvironmentVariables(_message.Message):
    __slots__ = ("values", "valuesFrom")
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ValuesFromEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: EnvValueFrom
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[EnvValueFrom, _Mapping]] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUESFROM_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    valuesFrom: _containers.MessageMap[str, EnvValueFrom]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ..., valuesFrom: _Optional[_Mapping[str, EnvValueFrom]] = ...) -> None: ...

class AutoscalerOptions(_message.Message):
    __slots__ = ("idleTimeoutSeconds", "upscalingMode", "image", "imagePullPolicy", "cpu", "memory", "envs", "volumes")
    IDLETIMEOUTSECONDS_FIELD_NUMBER: _ClassVar[int]
    UPSCALINGMODE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    IMAGEPULLPOLICY_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    ENVS_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    idleTimeoutSeconds: int
    upscalingMode: str
    image: str
    imagePullPolicy: str
    cpu: str
    memory: str
    envs: EnvironmentVariables
    volumes: _containers.RepeatedCompositeFieldContainer[Volume]
    def __init__(self, idleTimeoutSeconds: _Optional[int] = ..., upscalingMode: _Optional[str] = ..., image: _Optional[str] = ..., imagePullPolicy: _Optional[str] = ..., cpu: _Optional[str] = ..., memory: _Optional[str] = ..., envs: _Optional[_Union[EnvironmentVariables, _Mapping]] = ..., volumes: _Optional[_Iterable[_Union[Volume, _Mapping]]] = ...) -> None: ...

class Cluster(_message.Message):
    __slots__ = ("name", "namespace", "user", "version", "environment", "cluster_spec", "annotations", "envs", "created_at", "deleted_at", "cluster_state", "events", "service_endpoint", "labels")
    class Environment(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DEV: _ClassVar[Cluster.Environment]
        TESTING: _ClassVar[Cluster.Environment]
        STAGING: _ClassVar[Cluster.Environment]
        PRODUCTION: _ClassVar[Cluster.Environment]
    DEV: Cluster.Environment
    TESTING: Cluster.Environment
    STAGING: Cluster.Environment
    PRODUCTION: Cluster.Environment
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ServiceEndpointEntry(_message.Message):
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
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SPEC_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    ENVS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DELETED_AT_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_STATE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    user: str
    version: str
    environment: Cluster.Environment
    cluster_spec: ClusterSpec
    annotations: _containers.ScalarMap[str, str]
    envs: EnvironmentVariables
    created_at: _timestamp_pb2.Timestamp
    deleted_at: _timestamp_pb2.Timestamp
    cluster_state: str
    events: _containers.RepeatedCompositeFieldContainer[ClusterEvent]
    service_endpoint: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[str] = ..., environment: _Optional[_Union[Cluster.Environment, str]] = ..., cluster_spec: _Optional[_Union[ClusterSpec, _Mapping]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., envs: _Optional[_Union[EnvironmentVariables, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deleted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cluster_state: _Optional[str] = ..., events: _Optional[_Iterable[_Union[ClusterEvent, _Mapping]]] = ..., service_endpoint: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ClusterSpec(_message.Message):
    __slots__ = ("head_group_spec", "worker_group_spec", "enableInTreeAutoscaling", "autoscalerOptions", "headServiceAnnotations", "suspend", "spec")
    class HeadServiceAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HEAD_GROUP_SPEC_FIELD_NUMBER: _ClassVar[int]
    WORKER_GROUP_SPEC_FIELD_NUMBER: _ClassVar[int]
    ENABLEINTREEAUTOSCALING_FIELD_NUMBER: _ClassVar[int]
    AUTOSCALEROPTIONS_FIELD_NUMBER: _ClassVar[int]
    HEADSERVICEANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    head_group_spec: HeadGroupSpec
    worker_group_spec: _containers.RepeatedCompositeFieldContainer[WorkerGroupSpec]
    enableInTreeAutoscaling: bool
    autoscalerOptions: AutoscalerOptions
    headServiceAnnotations: _containers.ScalarMap[str, str]
    suspend: bool
    spec: _struct_pb2.Struct
    def __init__(self, head_group_spec: _Optional[_Union[HeadGroupSpec, _Mapping]] = ..., worker_group_spec: _Optional[_Iterable[_Union[WorkerGroupSpec, _Mapping]]] = ..., enableInTreeAutoscaling: _Optional[bool] = ..., autoscalerOptions: _Optional[_Union[AutoscalerOptions, _Mapping]] = ..., headServiceAnnotations: _Optional[_Mapping[str, str]] = ..., suspend: _Optional[bool] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class Volume(_message.Message):
    __slots__ = ("mount_path", "volume_type", "name", "source", "read_only", "host_path_type", "mount_propagation_mode", "storageClassName", "accessMode", "storage", "items")
    class VolumeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PERSISTENT_VOLUME_CLAIM: _ClassVar[Volume.VolumeType]
        HOST_PATH: _ClassVar[Volume.VolumeType]
        EPHEMERAL: _ClassVar[Volume.VolumeType]
        CONFIGMAP: _ClassVar[Volume.VolumeType]
        SECRET: _ClassVar[Volume.VolumeType]
        EMPTY_DIR: _ClassVar[Volume.VolumeType]
    PERSISTENT_VOLUME_CLAIM: Volume.VolumeType
    HOST_PATH: Volume.VolumeType
    EPHEMERAL: Volume.VolumeType
    CONFIGMAP: Volume.VolumeType
    SECRET: Volume.VolumeType
    EMPTY_DIR: Volume.VolumeType
    class HostPathType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DIRECTORY: _ClassVar[Volume.HostPathType]
        FILE: _ClassVar[Volume.HostPathType]
    DIRECTORY: Volume.HostPathType
    FILE: Volume.HostPathType
    class MountPropagationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[Volume.MountPropagationMode]
        HOSTTOCONTAINER: _ClassVar[Volume.MountPropagationMode]
        BIDIRECTIONAL: _ClassVar[Volume.MountPropagationMode]
    NONE: Volume.MountPropagationMode
    HOSTTOCONTAINER: Volume.MountPropagationMode
    BIDIRECTIONAL: Volume.MountPropagationMode
    class AccessMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RWO: _ClassVar[Volume.AccessMode]
        ROX: _ClassVar[Volume.AccessMode]
        RWX: _ClassVar[Volume.AccessMode]
    RWO: Volume.AccessMode
    ROX: Volume.AccessMode
    RWX: Volume.AccessMode
    class ItemsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MOUNT_PATH_FIELD_NUMBER: _ClassVar[int]
    VOLUME_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    HOST_PATH_TYPE_FIELD_NUMBER: _ClassVar[int]
    MOUNT_PROPAGATION_MODE_FIELD_NUMBER: _ClassVar[int]
    STORAGECLASSNAME_FIELD_NUMBER: _ClassVar[int]
    ACCESSMODE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    mount_path: str
    volume_type: Volume.VolumeType
    name: str
    source: str
    read_only: bool
    host_path_type: Volume.HostPathType
    mount_propagation_mode: Volume.MountPropagationMode
    storageClassName: str
    accessMode: Volume.AccessMode
    storage: str
    items: _containers.ScalarMap[str, str]
    def __init__(self, mount_path: _Optional[str] = ..., volume_type: _Optional[_Union[Volume.VolumeType, str]] = ..., name: _Optional[str] = ..., source: _Optional[str] = ..., read_only: _Optional[bool] = ..., host_path_type: _Optional[_Union[Volume.HostPathType, str]] = ..., mount_propagation_mode: _Optional[_Union[Volume.MountPropagationMode, str]] = ..., storageClassName: _Optional[str] = ..., accessMode: _Optional[_Union[Volume.AccessMode, str]] = ..., storage: _Optional[str] = ..., items: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("add", "drop")
    ADD_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    add: _containers.RepeatedScalarFieldContainer[str]
    drop: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, add: _Optional[_Iterable[str]] = ..., drop: _Optional[_Iterable[str]] = ...) -> None: ...

class SecurityContext(_message.Message):
    __slots__ = ("capabilities", "privileged")
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    PRIVILEGED_FIELD_NUMBER: _ClassVar[int]
    capabilities: Capabilities
    privileged: bool
    def __init__(self, capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., privileged: _Optional[bool] = ...) -> None: ...

class HeadGroupSpec(_message.Message):
    __slots__ = ("compute_template", "image", "service_type", "enableIngress", "ray_start_params", "volumes", "service_account", "image_pull_secret", "environment", "annotations", "labels", "imagePullPolicy", "security_context", "node_selector", "tolerations", "affinity", "spec")
    class RayStartParamsEntry(_message.Message):
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
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMPUTE_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    SERVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENABLEINGRESS_FIELD_NUMBER: _ClassVar[int]
    RAY_START_PARAMS_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_PULL_SECRET_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    IMAGEPULLPOLICY_FIELD_NUMBER: _ClassVar[int]
    SECURITY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    compute_template: str
    image: str
    service_type: str
    enableIngress: bool
    ray_start_params: _containers.ScalarMap[str, str]
    volumes: _containers.RepeatedCompositeFieldContainer[Volume]
    service_account: str
    image_pull_secret: str
    environment: EnvironmentVariables
    annotations: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    imagePullPolicy: str
    security_context: SecurityContext
    node_selector: _containers.ScalarMap[str, str]
    tolerations: _containers.RepeatedCompositeFieldContainer[_config_pb2.PodToleration]
    affinity: _struct_pb2.Struct
    spec: _struct_pb2.Struct
    def __init__(self, compute_template: _Optional[str] = ..., image: _Optional[str] = ..., service_type: _Optional[str] = ..., enableIngress: _Optional[bool] = ..., ray_start_params: _Optional[_Mapping[str, str]] = ..., volumes: _Optional[_Iterable[_Union[Volume, _Mapping]]] = ..., service_account: _Optional[str] = ..., image_pull_secret: _Optional[str] = ..., environment: _Optional[_Union[EnvironmentVariables, _Mapping]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., imagePullPolicy: _Optional[str] = ..., security_context: _Optional[_Union[SecurityContext, _Mapping]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., tolerations: _Optional[_Iterable[_Union[_config_pb2.PodToleration, _Mapping]]] = ..., affinity: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class WorkerGroupSpec(_message.Message):
    __slots__ = ("group_name", "compute_template", "image", "replicas", "min_replicas", "max_replicas", "ray_start_params", "volumes", "service_account", "image_pull_secret", "environment", "annotations", "labels", "imagePullPolicy", "security_context", "node_selector", "tolerations", "affinity", "spec", "num_of_hosts", "idle_timeout_seconds", "suspend")
    class RayStartParamsEntry(_message.Message):
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
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    RAY_START_PARAMS_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    SERVICE_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_PULL_SECRET_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    IMAGEPULLPOLICY_FIELD_NUMBER: _ClassVar[int]
    SECURITY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    NUM_OF_HOSTS_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    group_name: str
    compute_template: str
    image: str
    replicas: int
    min_replicas: int
    max_replicas: int
    ray_start_params: _containers.ScalarMap[str, str]
    volumes: _containers.RepeatedCompositeFieldContainer[Volume]
    service_account: str
    image_pull_secret: str
    environment: EnvironmentVariables
    annotations: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    imagePullPolicy: str
    security_context: SecurityContext
    node_selector: _containers.ScalarMap[str, str]
    tolerations: _containers.RepeatedCompositeFieldContainer[_config_pb2.PodToleration]
    affinity: _struct_pb2.Struct
    spec: _struct_pb2.Struct
    num_of_hosts: int
    idle_timeout_seconds: int
    suspend: bool
    def __init__(self, group_name: _Optional[str] = ..., compute_template: _Optional[str] = ..., image: _Optional[str] = ..., replicas: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ..., ray_start_params: _Optional[_Mapping[str, str]] = ..., volumes: _Optional[_Iterable[_Union[Volume, _Mapping]]] = ..., service_account: _Optional[str] = ..., image_pull_secret: _Optional[str] = ..., environment: _Optional[_Union[EnvironmentVariables, _Mapping]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., imagePullPolicy: _Optional[str] = ..., security_context: _Optional[_Union[SecurityContext, _Mapping]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., tolerations: _Optional[_Iterable[_Union[_config_pb2.PodToleration, _Mapping]]] = ..., affinity: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., num_of_hosts: _Optional[int] = ..., idle_timeout_seconds: _Optional[int] = ..., suspend: _Optional[bool] = ...) -> None: ...

class ClusterEvent(_message.Message):
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
