// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/trace_context.h"

namespace grpc {
class ServerContextBase;
}

namespace grpc::experimental {
class ClientInterceptorFactoryInterface;
class ServerInterceptorFactoryInterface;
}  // namespace grpc::experimental

// Traces across calls of gRPC, in the header `traceparent` of W3C Trace Context. Every
// channel and server of ours has them; while nothing is traced they cost a load a call.
namespace mtmc::rpc {

// Gives each call that begins in a trace a span, from its start to its status, and sends
// the span's context along. The trace is that of the thread that begins the call.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> MakeClientTracer();

// Gives each call that comes from a trace a span of this server, which takes the place of
// the caller's in the metadata of the call. Calls from nowhere get none.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeServerTracer();

// What a method works for: the span of its call. Not valid outside of traces.
base::TraceContext TraceOf(const grpc::ServerContextBase& context);

}  // namespace mtmc::rpc
