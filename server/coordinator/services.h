// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace grpc {
class Service;
}

namespace mtmc::base {
class Executor;
}

namespace mtmc::store {
class ArtifactStore;
class JobStore;
}  // namespace mtmc::store

namespace mtmc::coordinator {

class Coordinator;

// The wire adapters, one per service of the contract. What they are given
// outlives them. Work that may block runs on `executor`.
std::unique_ptr<grpc::Service> MakeJobService(Coordinator& coordinator, base::Executor& executor);
std::unique_ptr<grpc::Service> MakeCandidateService(store::JobStore& store,
                                                    base::Executor& executor);
std::unique_ptr<grpc::Service> MakeArtifactService(store::ArtifactStore& artifacts,
                                                   base::Executor& executor);
std::unique_ptr<grpc::Service> MakeWorkerService(Coordinator& coordinator,
                                                 base::Executor& executor);
std::unique_ptr<grpc::Service> MakeLeaseService(Coordinator& coordinator);

}  // namespace mtmc::coordinator
