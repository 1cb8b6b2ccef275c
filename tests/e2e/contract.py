# SPDX-License-Identifier: Apache-2.0
"""The wire contract without generated code: messages and calls from the
descriptor set that the build writes, share/mtmc/mtmc.binpb."""

import pathlib
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.rpc import error_details_pb2, status_pb2

CHUNK_BYTES = 1 << 20
CALL_SECONDS = 20


class CallError(Exception):
    """A call that was answered by an error: its gRPC code, reason and message."""

    def __init__(self, code, reason, message):
        super().__init__(f"{code.name} [{reason}] {message}")
        self.code = code
        self.reason = reason
        self.message = message


class Contract:
    """Message classes by name, as in `contract.Job`. Thread-safe once made."""

    def __init__(self, descriptor_set):
        self.pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(
            pathlib.Path(descriptor_set).read_bytes()
        )
        for file in files.file:
            self.pool.Add(file)

    def message(self, full_name):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(full_name))

    def __getattr__(self, name):
        return self.message(f"mtmc.v1.{name}")

    def method(self, service, name):
        return self.pool.FindServiceByName(f"mtmc.v1.{service}").FindMethodByName(name)

    def error(self, rpc_error):
        """A CallError from what grpc raised."""
        reason = ""
        for key, value in rpc_error.trailing_metadata() or ():
            if key != "grpc-status-details-bin":
                continue
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    reason = info.reason
        return CallError(rpc_error.code(), reason, rpc_error.details())


class Client:
    """Calls of one daemon: `client.call("JobService", "GetJob", name=...)`.

    Raises CallError for an error of the service. With a token it calls as whoever has that.
    `options` are more of the channel's (pairs of gRPC's names and values)."""

    def __init__(self, contract, endpoint, token=None, options=()):
        self.contract = contract
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self.channel = grpc.insecure_channel(
            endpoint, options=[("grpc.max_reconnect_backoff_ms", 500), *options]
        )

    def close(self):
        self.channel.close()

    def _bound(self, service, name, kind):
        method = self.contract.method(service, name)
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        return request, getattr(self.channel, kind)(
            f"/mtmc.v1.{service}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )

    def call(self, service, method, /, seconds=CALL_SECONDS, **fields):
        request, invoke = self._bound(service, method, "unary_unary")
        try:
            return invoke(request(**fields), timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self.contract.error(error) from None

    def stream(self, service, method, /, seconds, **fields):
        """Yields the responses of a server's stream."""
        request, invoke = self._bound(service, method, "unary_stream")
        responses = invoke(request(**fields), timeout=seconds, metadata=self._metadata)
        try:
            yield from responses
        except grpc.RpcError as error:
            raise self.contract.error(error) from None
        finally:
            responses.cancel()

    def upload(self, data, digest):
        request, invoke = self._bound("ArtifactService", "UploadArtifact", "stream_unary")

        def parts():
            yield request(digest=digest)
            for start in range(0, len(data), CHUNK_BYTES):
                yield request(chunk=data[start : start + CHUNK_BYTES])

        try:
            return invoke(parts(), timeout=CALL_SECONDS, metadata=self._metadata).digest
        except grpc.RpcError as error:
            raise self.contract.error(error) from None

    def events(self, job, cursor=0, seconds=CALL_SECONDS):
        """Events of a job after `cursor`, until it has ended."""
        for response in self.stream("JobService", "WatchJob", seconds, name=job, cursor=cursor):
            yield response.event


def new_request_id():
    return str(uuid.uuid4())
