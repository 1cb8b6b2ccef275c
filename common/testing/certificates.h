// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace mtmc::testing {

// A certificate and its private key in PEM.
struct CertificatePair {
  std::string certificate;
  std::string key;
};

// An authority that signs certificates for tests of TLS, with keys of its own each time.
// They are valid for a day.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();

  // What whoever trusts this authority needs.
  std::string certificate() const;

  // A certificate for 127.0.0.1, localhost and `name`.
  CertificatePair Issue(const std::string& name) const;

 private:
  struct State;

  const std::unique_ptr<State> state_;
};

}  // namespace mtmc::testing
