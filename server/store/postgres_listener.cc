// SPDX-License-Identifier: Apache-2.0
#include "server/store/postgres_listener.h"

#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "server/store/postgres_job_store.h"

namespace mtmc::store {
namespace {

constexpr int kRetryMs = 500;

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresListener>> PostgresListener::Open(const std::string& address,
                                                                         Sink sink) {
  MTMC_ASSIGN_OR_RETURN(const std::string info, PostgresConnectionInfo(address));
  base::UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) return base::SystemError(errno, "cannot make an eventfd");
  return std::unique_ptr<PostgresListener>(
      new PostgresListener(info, std::move(sink), std::move(stop)));
}

PostgresListener::PostgresListener(std::string info, Sink sink, base::UniqueFd stop)
    : info_(std::move(info)),
      sink_(std::move(sink)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

PostgresListener::~PostgresListener() {
  const uint64_t one = 1;
  // A counter that is full is readable as well.
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
}

void PostgresListener::Run() {
  pthread_setname_np(pthread_self(), "mtmc-listen");
  do {
    Listen();
  } while (Wait(-1, kRetryMs));
}

void PostgresListener::Listen() {
  const Connection connection(PQconnectdb(info_.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) return;
  PGresult* result = PQexec(connection.get(), absl::StrCat("LISTEN ", kEventChannel).c_str());
  const bool is_listening = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  if (!is_listening) return;
  sink_.on_gap();
  while (Wait(PQsocket(connection.get()), -1)) {
    if (PQconsumeInput(connection.get()) == 0) return;
    while (PGnotify* notification = PQnotifies(connection.get())) {
      const std::vector<std::string> jobs = absl::StrSplit(notification->extra, kEventSeparator);
      PQfreemem(notification);
      for (const std::string& job : jobs) sink_.on_events(job);
    }
  }
}

bool PostgresListener::Wait(int socket, int timeout_ms) const {
  std::array<pollfd, 2> polled = {{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = socket, .events = POLLIN, .revents = 0}}};
  while (poll(polled.data(), polled.size(), timeout_ms) < 0 && errno == EINTR) {
  }
  return (polled[0].revents & POLLIN) == 0;
}

}  // namespace mtmc::store
