# SPDX-License-Identifier: Apache-2.0
"""A collector of OpenTelemetry traces: takes OTLP over gRPC and keeps the spans."""

import concurrent.futures
import dataclasses
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


@dataclasses.dataclass(frozen=True)
class Span:
    service: str
    name: str
    kind: str
    trace: str
    id: str
    # Empty for the root of a trace.
    parent: str
    start: int
    end: int
    attributes: dict
    # Empty where the work did not fail.
    error: str


def _value(value):
    return getattr(value, value.WhichOneof("value"))


def _spans(request):
    for resource in request.resource_spans:
        service = {a.key: _value(a.value) for a in resource.resource.attributes}["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8
                keys = [a.key for a in span.attributes]
                assert len(keys) == len(set(keys)), f"{span.name} says something twice: {keys}"
                yield Span(
                    service=service,
                    name=span.name,
                    kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes={a.key: _value(a.value) for a in span.attributes},
                    error=span.status.message
                    if span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
                    else "",
                )


class Collector:
    """Serves on a port of its own. A context manager; thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._spans = []
        self._received = []
        export = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=lambda data: data,
            response_serializer=trace_service_pb2.ExportTraceServiceResponse.SerializeToString,
        )
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(_SERVICE, {"Export": export})]
        )
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.endpoint = f"127.0.0.1:{port}"

    def _export(self, data, context):
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(data)
        found = list(_spans(request))
        with self._lock:
            self._spans += found
            self._received += [data, repr(context.invocation_metadata()).encode()]
        return trace_service_pb2.ExportTraceServiceResponse()

    @property
    def spans(self):
        with self._lock:
            return list(self._spans)

    @property
    def received(self):
        """Every byte that came, with the headers of the calls."""
        with self._lock:
            return b"".join(self._received)

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()
