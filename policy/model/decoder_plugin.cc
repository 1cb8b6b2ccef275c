// SPDX-License-Identifier: Apache-2.0
//
// `mtmc_lm.so`: the other side of decoder_abi.h.
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "policy/model/decoder_weights.h"

namespace mtmc::policy {
namespace {

// Numeric values of absl::StatusCode.
constexpr int32_t kResourceExhausted = 8;
constexpr int32_t kInternal = 13;

// Runs `function`, and reports what libtorch throws. Whether it returned.
template <typename Function>
bool Guarded(MtmcDecoderReport report, void* context, Function function) {
  try {
    function();
    return true;
  } catch (const c10::OutOfMemoryError& error) {
    report(context, kResourceExhausted, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    report(context, kResourceExhausted, "out of memory");
  } catch (const c10::Error& error) {
    report(context, kInternal, error.what_without_backtrace());
  } catch (const std::exception& error) {
    report(context, kInternal, error.what());
  }
  return false;
}

void* Create(const MtmcDecoderConfig* config, MtmcDecoderLookup lookup, void* lookup_context,
             MtmcDecoderReport report, void* report_context) {
  LoadResult loaded;
  const bool returned = Guarded(report, report_context,
                                [&] { loaded = LoadDecoder(*config, lookup, lookup_context); });
  if (!returned) return nullptr;
  if (loaded.error.code != 0) {
    report(report_context, loaded.error.code, loaded.error.message.c_str());
    return nullptr;
  }
  return std::make_unique<DecoderWeights>(std::move(loaded.weights)).release();
}

void Destroy(void* model) { delete static_cast<DecoderWeights*>(model); }

int64_t Parameters(const void* model) {
  return static_cast<const DecoderWeights*>(model)->parameters;
}

int32_t Score(const void* model, const MtmcDecoderTree* trees, size_t count,
              double* log_probabilities, MtmcDecoderReport report, void* report_context) {
  const bool returned = Guarded(report, report_context, [&] {
    const std::vector<double> scores =
        ScoreTrees(*static_cast<const DecoderWeights*>(model), trees, count);
    std::copy(scores.begin(), scores.end(), log_probabilities);
  });
  return returned ? 1 : 0;
}

}  // namespace
}  // namespace mtmc::policy

extern "C" __attribute__((visibility("default"))) const MtmcDecoderApi* mtmc_decoder_api() {
  static constexpr MtmcDecoderApi kApi = {.version = kMtmcDecoderAbiVersion,
                                          .create = &mtmc::policy::Create,
                                          .destroy = &mtmc::policy::Destroy,
                                          .parameters = &mtmc::policy::Parameters,
                                          .score = &mtmc::policy::Score};
  return &kApi;
}
