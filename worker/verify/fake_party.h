// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "worker/verify/party.h"

namespace mtmc::worker {

// For tests: a child whose answers are a function of the request.
template <typename Request, typename Response>
class FakeParty : public Party<Request, Response> {
 public:
  using Answer = std::function<Reply<Response>(const Request&)>;

  explicit FakeParty(Answer answer) : answer_(std::move(answer)) {}

  Reply<Response> Call(const Request& request, absl::Duration) override {
    requests.push_back(request);
    return answer_(request);
  }

  std::vector<Request> requests;

 private:
  const Answer answer_;
};

}  // namespace mtmc::worker
