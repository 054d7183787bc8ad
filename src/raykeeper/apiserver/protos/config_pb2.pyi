from google.api import annotations_pb2 as _annotations_pb2
from google.api import field_behavior_pb2 as _field_behavior_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateComputeTemplateRequest(_message.Message):
    __slots__ = ("compute_template", "namespace")
    COMPUTE_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    compute_template: ComputeTemplate
    namespace: str
    def __init__(self, compute_template: _Optional[_Union[ComputeTemplate, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class GetComputeTemplateRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ListComputeTemplatesRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListComputeTemplatesResponse(_message.Message):
    __slots__ = ("compute_templates",)
    COMPUTE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    compute_templates: _containers.RepeatedCompositeFieldContainer[ComputeTemplate]
    def __init__(self, compute_templates: _Optional[_Iterable[_Union[ComputeTemplate, _Mapping]]] = ...) -> None: ...

class ListAllComputeTemplatesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAllComputeTemplatesResponse(_message.Message):
    __slots__ = ("compute_templates",)
    COMPUTE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    compute_templates: _containers.RepeatedCompositeFieldContainer[ComputeTemplate]
    def __init__(self, compute_templates: _Optional[_Iterable[_Union[ComputeTemplate, _Mapping]]] = ...) -> None: ...

class DeleteComputeTemplateRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class PodToleration(_message.Message):
    __slots__ = ("key", "operator", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: str
    value: str
    effect: str
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class ComputeTemplate(_message.Message):
    __slots__ = ("name", "namespace", "cpu", "memory", "gpu", "gpu_accelerator", "tolerations", "extended_resources", "memory_unit", "requests", "limits", "node_selector", "affinity")
    class ExtendedResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RequestsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LimitsEntry(_message.Message):
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
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GPU_FIELD_NUMBER: _ClassVar[int]
    GPU_ACCELERATOR_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_UNIT_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    cpu: int
    memory: int
    gpu: int
    gpu_accelerator: str
    tolerations: _containers.RepeatedCompositeFieldContainer[PodToleration]
    extended_resources: _containers.ScalarMap[str, int]
    memory_unit: str
    requests: _containers.ScalarMap[str, str]
    limits: _containers.ScalarMap[str, str]
    node_selector: _containers.ScalarMap[str, str]
    affinity: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., cpu: _Optional[int] = ..., memory: _Optional[int] = ..., gpu: _Optional[int] = ..., gpu_accelerator: _Optional[str] = ..., tolerations: _Optional[_Iterable[_Union[PodToleration, _Mapping]]] = ..., extended_resources: _Optional[_Mapping[str, int]] = ..., memory_unit: _Optional[str] = ..., requests: _Optional[_Mapping[str, str]] = ..., limits: _Optional[_Mapping[str, str]] = ..., node_selector: _Optional[_Mapping[str, str]] = ..., affinity: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class CreateImageTemplateRequest(_message.Message):
    __slots__ = ("image_template", "namespace")
    IMAGE_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    image_template: ImageTemplate
    namespace: str
    def __init__(self, image_template: _Optional[_Union[ImageTemplate, _Mapping]] = ..., namespace: _Optional[str] = ...) -> None: ...

class GetImageTemplateRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ListImageTemplatesRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class ListImageTemplatesResponse(_message.Message):
    __slots__ = ("image_templates",)
    IMAGE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    image_templates: _containers.RepeatedCompositeFieldContainer[ImageTemplate]
    def __init__(self, image_templates: _Optional[_Iterable[_Union[ImageTemplate, _Mapping]]] = ...) -> None: ...

class ListAllImageTemplatesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAllImageTemplatesResponse(_message.Message):
    __slots__ = ("image_templates",)
    IMAGE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    image_templates: _containers.RepeatedCompositeFieldContainer[ImageTemplate]
    def __init__(self, image_templates: _Optional[_Iterable[_Union[ImageTemplate, _Mapping]]] = ...) -> None: ...

class DeleteImageTemplateRequest(_message.Message):
    __slots__ = ("name", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ImageTemplate(_message.Message):
    __slots__ = ("name", "namespace", "base_image", "pip_packages", "conda_packages", "system_packages", "environment_variables", "custom_commands", "image")
    class EnvironmentVariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    BASE_IMAGE_FIELD_NUMBER: _ClassVar[int]
    PIP_PACKAGES_FIELD_NUMBER: _ClassVar[int]
    CONDA_PACKAGES_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PACKAGES_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_VARIABLES_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    base_image: str
    pip_packages: _containers.RepeatedScalarFieldContainer[str]
    conda_packages: _containers.RepeatedScalarFieldContainer[str]
    system_packages: _containers.RepeatedScalarFieldContainer[str]
    environment_variables: _containers.ScalarMap[str, str]
    custom_commands: str
    image: str
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., base_image: _Optional[str] = ..., pip_packages: _Optional[_Iterable[str]] = ..., conda_packages: _Optional[_Iterable[str]] = ..., system_packages: _Optional[_Iterable[str]] = ..., environment_variables: _Optional[_Mapping[str, str]] = ..., custom_commands: _Optional[str] = ..., image: _Optional[str] = ...) -> None: ...
