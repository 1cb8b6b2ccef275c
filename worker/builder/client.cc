// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/client.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/builder/party_exchange.h"

namespace mtmc::worker {

BuilderClient::BuilderClient(Options options) : options_(std::move(options)) {}

BuilderClient::~BuilderClient() = default;

Reply<pipe::v1::BuilderResponse> BuilderClient::Call(const pipe::v1::BuilderRequest& request,
                                                     absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  if (!process_) {
    std::vector<std::string> argv = {options_.program, "--threads",
                                     std::to_string(options_.num_threads)};
    for (std::string& flag : options_.tools.ToFlags()) argv.push_back(std::move(flag));
    auto started = ChildProcess::Start({.argv = std::move(argv),
                                        .scratch = options_.scratch,
                                        .name = "builder",
                                        .confinement = options_.confinement,
                                        .max_resident_bytes = options_.max_resident_bytes,
                                        .is_cancelled = options_.is_cancelled});
    if (!started.ok()) {
      Reply<pipe::v1::BuilderResponse> reply{
          .ending = Reply<pipe::v1::BuilderResponse>::Ending::kUnavailable,
          .response = {},
          .detail = {}};
      reply.detail =
          absl::StrCat("could not be started: ", std::string(started.status().message()));
      return reply;
    }
    process_ = *std::move(started);
  }
  return ExchangeWith<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse>(process_, request,
                                                                           ++sequence_, deadline);
}

}  // namespace mtmc::worker
