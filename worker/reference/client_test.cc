// SPDX-License-Identifier: Apache-2.0
#include "worker/reference/client.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "mtmc/pipe/v1/reference.pb.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;

// Answers every request, and writes down what it was asked, with the number of the process.
constexpr char kInterpreter[] = R"sh(#!/bin/sh
echo "$5$6" >> "$4/starts"
process=$(wc -l < "$4/starts")
while read -r line; do
  number=$(echo "$line" | sed 's/.*"sequence":"\([0-9]*\)".*/\1/')
  case "$line" in
    *'"load"'*) word=load answer=loaded ;;
    *) word=prepare answer=prepared ;;
  esac
  printf '%s' "$word-$process " >> "$4/asked"
  echo "{\"sequence\":\"$number\",\"$answer\":{}}"
done
)sh";

class FakeReference {
 public:
  FakeReference() {
    CHECK_THAT(base::WriteFileAtomically(program_, kInterpreter), IsOk());
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }

  void Load(const std::string& path) {
    pipe::v1::ReferenceRequest request;
    request.mutable_load()->set_path(path);
    CHECK(client.Call(request, absl::Seconds(10)).is_answered());
  }

  void Prepare() {
    pipe::v1::ReferenceRequest request;
    request.mutable_prepare()->set_workload(1);
    CHECK(client.Call(request, absl::Seconds(10)).is_answered());
  }

  // A line for each start, with the flags that not all of them have.
  std::string starts() const {
    return base::ReadFile((folder_.path() / "starts").string()).value_or("");
  }

  std::string asked() const {
    return base::ReadFile((folder_.path() / "asked").string()).value_or("");
  }

 private:
  base::TempDir folder_ = *base::TempDir::Create();
  std::string program_ = (folder_.path() / "python").string();

 public:
  ReferenceClient client{{.python = program_, .scratch = folder_.path().string(), .device = "cpu"}};
};

TEST_CASE("A Load that was answered is not repeated", "[reference]") {
  FakeReference reference;
  reference.Load("p.py");
  reference.Load("p.py");
  reference.Prepare();
  CHECK(reference.asked() == "load-1 prepare-1 ");
}

TEST_CASE("After a rest the Load is repeated in a new process, for its own sake", "[reference]") {
  FakeReference reference;
  reference.Load("p.py");
  reference.client.Rest();
  reference.Load("p.py");
  reference.Prepare();
  CHECK(reference.asked() == "load-1 load-2 prepare-2 ");
}

TEST_CASE("After a rest the Load is repeated before what needs it", "[reference]") {
  FakeReference reference;
  reference.Load("p.py");
  reference.client.Rest();
  reference.Prepare();
  reference.Prepare();
  CHECK(reference.asked() == "load-1 load-2 prepare-2 prepare-2 ");
}

TEST_CASE("A process that has nothing loaded outlives a rest", "[reference]") {
  FakeReference reference;
  reference.client.Warm();
  reference.client.Rest();
  reference.Load("p.py");
  reference.client.Rest();
  reference.client.Rest();
  reference.Load("q.py");
  CHECK(reference.asked() == "load-1 load-2 ");
}

TEST_CASE("A process that is started for a request does not rehearse first", "[reference]") {
  FakeReference reference;
  reference.Load("p.py");
  CHECK(reference.starts() == "\n");
}

TEST_CASE("A process that is started ahead of requests rehearses on the device", "[reference]") {
  FakeReference reference;
  reference.client.Warm();
  reference.Load("p.py");
  reference.client.Rest();
  reference.Load("q.py");
  CHECK(reference.starts() == "--rehearsecpu\n--rehearsecpu\n");
}

TEST_CASE("A rest that was prepared takes the process that is warm by then", "[reference]") {
  FakeReference reference;
  reference.client.PrepareRest();
  CHECK(reference.starts().empty());
  reference.Load("p.py");
  reference.client.PrepareRest();
  reference.client.PrepareRest();
  reference.Prepare();
  reference.client.Rest();
  reference.Prepare();
  CHECK(reference.asked() == "load-1 prepare-1 load-2 prepare-2 ");
  CHECK(reference.starts() == "\n--rehearsecpu\n");
}

}  // namespace
}  // namespace mtmc::worker
