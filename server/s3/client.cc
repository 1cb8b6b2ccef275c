// SPDX-License-Identifier: Apache-2.0
#include "server/s3/client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/s3/curl_library.h"
#include "server/s3/refusal.h"

namespace mtmc::s3 {
namespace {

using base::Log;
using base::LogLevel;

// A part of a blob, or a listing of 1,000 objects.
constexpr size_t kMaxBody = size_t{16} << 20;
constexpr size_t kMaxIdle = 16;
constexpr absl::Duration kMaxPause = absl::Seconds(5);

absl::Status Unavailable(const std::string& what) {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "S3_UNAVAILABLE",
                        absl::StrCat("S3 is not available: ", what, "; try again"));
}

// By RFC 3986, as a signature wants it.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~';
    if (is_plain) {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "%",
                      absl::AsciiStrToUpper(absl::StrCat(absl::Hex(byte, absl::kZeroPad2))));
    }
  }
  return escaped;
}

std::string UrlOf(const Settings& settings, const Request& request) {
  std::string url = settings.BucketUrl();
  // A bucket alone, in its path, has no slash: it would be signed.
  if (!request.key.empty() || settings.endpoint.empty()) absl::StrAppend(&url, "/", request.key);
  const char* separator = "?";
  for (const auto& [name, value] : request.query) {
    absl::StrAppend(&url, separator, Escape(name), "=", Escape(value));
    separator = "&";
  }
  return url;
}

size_t OnBody(char* bytes, size_t, size_t size, void* target) {
  auto& body = static_cast<Response*>(target)->body;
  if (body.size() + size > kMaxBody) return 0;
  body.append(bytes, size);
  return size;
}

size_t OnHeader(char* bytes, size_t, size_t size, void* target) {
  auto& headers = static_cast<Response*>(target)->headers;
  const std::string line(bytes, size);
  const size_t colon = line.find(':');
  // Of an answer that announces another, nothing is kept.
  if (line.rfind("HTTP/", 0) == 0) headers.clear();
  if (colon != std::string::npos && headers.size() < 100) {
    headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return size;
}

int OnProgress(void* interrupted, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(interrupted) ? 1 : 0;
}

// The header lines of a request.
class Headers {
 public:
  explicit Headers(const CurlLibrary& curl) : curl_(curl) {}

  ~Headers() { curl_.slist_free_all(list_); }

  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;

  void Add(const std::string& line) { list_ = curl_.slist_append(list_, line.c_str()); }

  curl_slist* list() const { return list_; }

 private:
  const CurlLibrary& curl_;
  curl_slist* list_ = nullptr;
};

long Milliseconds(absl::Duration duration) {
  return static_cast<long>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Create(Settings settings, const Options& options,
                                                       metrics::Registry& registry) {
  MTMC_ASSIGN_OR_RETURN(const CurlLibrary* const curl, OpenCurl());
  return std::unique_ptr<Client>(new Client(std::move(settings), options, *curl, registry));
}

Client::Client(Settings settings, const Options& options, const CurlLibrary& curl,
               metrics::Registry& registry)
    : settings_(std::move(settings)), options_(options), curl_(curl), registry_(registry) {}

Client::~Client() {
  for (void* handle : idle_) curl_.easy_cleanup(handle);
}

absl::StatusOr<Response> Client::Send(const Request& request) {
  const absl::Time end = absl::Now() + options_.total;
  absl::Duration longest = options_.first_pause;
  for (int attempt = 1;; ++attempt) {
    absl::Duration pause = absl::InfiniteDuration();
    absl::StatusOr<Response> response = Attempt(request, pause);
    if (response.ok() || pause == absl::InfiniteDuration()) {
      if (response.ok()) SetAway(absl::OkStatus());
      return response;
    }
    {
      const absl::MutexLock lock(&mu_);
      // Between half and all of it, so that callers that failed together part.
      pause = std::max(pause, longest * std::uniform_real_distribution<double>(0.5, 1)(random_));
    }
    longest = std::min(longest * 2, kMaxPause);
    const bool is_last = attempt >= options_.max_attempts || absl::Now() + pause >= end;
    if (is_last || is_away_ || !Pause(pause)) {
      SetAway(response.status());
      return response;
    }
    registry_.MakeCounter("mtmc_s3_retries_total", "Requests of S3 that were sent again.")
        .Increment();
  }
}

absl::StatusOr<Response> Client::Attempt(const Request& request, absl::Duration& pause) {
  if (is_interrupted_) return Unavailable("this process ends");
  // For each attempt: whoever replaces a file of credentials need not restart.
  MTMC_ASSIGN_OR_RETURN(const Credentials credentials, ReadCredentials(options_.environment));
  void* const handle = Borrow();
  if (handle == nullptr) return Unavailable("there is no memory for a connection");
  const absl::Time start = absl::Now();
  absl::StatusOr<Response> response = Perform(handle, request, credentials);
  Return(handle);
  const absl::Duration duration = absl::Now() - start;
  if (!response.ok()) {
    Count(request, "none", duration);
    if (!is_interrupted_) pause = absl::ZeroDuration();
    return response.status();
  }
  Count(request, absl::StrCat(response->status), duration);
  bool is_worth_another = false;
  absl::Status status = ToStatus(settings_, request, *response, is_worth_another);
  if (is_worth_another) {
    int64_t seconds = 0;
    const auto after = response->headers.find("retry-after");
    pause = after != response->headers.end() && absl::SimpleAtoi(after->second, &seconds)
                ? absl::Seconds(std::max(int64_t{0}, seconds))
                : absl::ZeroDuration();
  }
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<Response> Client::Perform(void* handle, const Request& request,
                                         const Credentials& credentials) {
  const auto set = [&](CURLoption option, auto value) { curl_.easy_setopt(handle, option, value); };
  Headers headers(curl_);
  // No question whether it may send, and no guess at a type.
  headers.Add("Expect:");
  headers.Add("Content-Type: application/octet-stream");
  headers.Add(absl::StrCat("x-amz-content-sha256: ", request.sha256.empty()
                                                         ? base::Sha256(request.body).sha256_hex
                                                         : request.sha256));
  if (!credentials.session_token.empty()) {
    headers.Add(absl::StrCat("x-amz-security-token: ", credentials.session_token));
  }
  for (const std::string& line : request.headers) headers.Add(line);
  const std::string url = UrlOf(settings_, request);
  const std::string signature = absl::StrCat("aws:amz:", settings_.region, ":s3");
  Response response;
  curl_.easy_reset(handle);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "mtmc");
  set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options_.connect_timeout));
  set(CURLOPT_TIMEOUT_MS, Milliseconds(options_.attempt_timeout));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, Milliseconds(options_.stall_timeout) / 1000));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&is_interrupted_));
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&response));
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&response));
  set(CURLOPT_HTTPHEADER, headers.list());
  set(CURLOPT_AWS_SIGV4, signature.c_str());
  set(CURLOPT_USERNAME, credentials.access_key.c_str());
  set(CURLOPT_PASSWORD, credentials.secret_key.c_str());
  if (!settings_.ca_file.empty()) set(CURLOPT_CAINFO, settings_.ca_file.c_str());
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  const CURLcode code = curl_.easy_perform(handle);
  long status = 0;
  curl_.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<int>(status);
  if (code == CURLE_OK) return response;
  const std::string where = settings_.endpoint.empty() ? settings_.BucketUrl() : settings_.endpoint;
  return Unavailable(absl::StrCat(curl_.easy_strerror(code), " while asking ", where));
}

void Client::SetAway(const absl::Status& status) {
  const bool was_away = is_away_.exchange(!status.ok());
  if (was_away == !status.ok()) return;
  if (status.ok()) {
    Log(LogLevel::kInfo, "S3 is back", {{"bucket", settings_.bucket}});
  } else {
    Log(LogLevel::kWarning, "S3 is away", {{"bucket", settings_.bucket}, {"error", status}});
  }
}

void Client::Count(const Request& request, const std::string& code, absl::Duration duration) {
  registry_
      .MakeCounter("mtmc_s3_requests_total",
                   "Requests of S3, each attempt, by the status of HTTP; none: no answer.",
                   {{"method", request.method}, {"code", code}})
      .Increment();
  registry_
      .MakeHistogram("mtmc_s3_request_seconds", "Time of a request of S3, of each attempt.",
                     metrics::SecondsBuckets(), {{"method", request.method}})
      .Observe(absl::ToDoubleSeconds(duration));
}

bool Client::Pause(absl::Duration duration) {
  const absl::MutexLock lock(&mu_);
  return !mu_.AwaitWithTimeout(
      absl::Condition(
          +[](const std::atomic<bool>* interrupted) { return interrupted->load(); },
          static_cast<const std::atomic<bool>*>(&is_interrupted_)),
      duration);
}

void Client::Interrupt() {
  const absl::MutexLock lock(&mu_);
  is_interrupted_ = true;
}

void* Client::Borrow() {
  const absl::MutexLock lock(&mu_);
  if (idle_.empty()) return curl_.easy_init();
  void* const handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void Client::Return(void* handle) {
  {
    const absl::MutexLock lock(&mu_);
    if (idle_.size() < kMaxIdle) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_.easy_cleanup(handle);
}

}  // namespace mtmc::s3
