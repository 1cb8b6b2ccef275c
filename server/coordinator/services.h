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

class ArtifactAccess;
class JobFeed;
class Relay;
class Seat;

// The wire adapters, one per service of the contract. What they are given
// outlives them. Work that may block runs on `executor`. Reads and watches are served
// from the store by every coordinator; the rest goes to the owner of the jobs.
std::unique_ptr<grpc::Service> MakeJobService(Relay& relay, store::JobStore& store, JobFeed& feed,
                                              base::Executor& executor,
                                              const ArtifactAccess& access);
std::unique_ptr<grpc::Service> MakeCandidateService(store::JobStore& store,
                                                    base::Executor& executor);
std::unique_ptr<grpc::Service> MakeArtifactService(store::ArtifactStore& artifacts,
                                                   base::Executor& executor,
                                                   const ArtifactAccess& access);
std::unique_ptr<grpc::Service> MakeRecordService(Relay& relay, store::JobStore& store,
                                                 base::Executor& executor);
std::unique_ptr<grpc::Service> MakeQuotaService(Relay& relay, store::JobStore& store,
                                                base::Executor& executor);
std::unique_ptr<grpc::Service> MakeWorkerService(Relay& relay, base::Executor& executor);
std::unique_ptr<grpc::Service> MakeLeaseService(Seat& seat, Relay& relay);

}  // namespace mtmc::coordinator
