// SPDX-License-Identifier: Apache-2.0
#include "server/search/library_calls.h"

namespace mtmc::search {
namespace {

constexpr const char* kProduct = "matrix product: years of tuning per device in the vendor library";
constexpr const char* kConvolution =
    "convolution: algorithm choice per shape in the vendor library";
constexpr const char* kNormalization = "normalization: one fused kernel in PyTorch";
constexpr const char* kSoftmax = "softmax: one fused kernel in PyTorch";
constexpr const char* kAttention = "attention: flash kernels choose themselves by shape";
constexpr const char* kPooling = "pooling and resampling: windows the engine may not print yet";
constexpr const char* kRecurrent = "recurrent network: one fused call for all steps";
constexpr const char* kScan = "scan or order: several passes that need workspace";
constexpr const char* kReduction = "reduction: one or two passes chosen by shape";
constexpr const char* kLookup = "lookup by index: bounds are checked by the library";
constexpr const char* kMovement = "data movement: copies of given tensors only";
constexpr const char* kPointwise = "element-wise: lets a plan of calls alone stay whole";
constexpr const char* kLoss = "loss: a fused reduction over given tensors";

constexpr LibraryCall kLibraryCalls[] = {
    {"aten::mm", kProduct},
    {"aten::addmm", kProduct},
    {"aten::bmm", kProduct},
    {"aten::baddbmm", kProduct},
    {"aten::mv", kProduct},
    {"aten::addmv", kProduct},
    {"aten::dot", kProduct},
    {"aten::linear", kProduct},
    {"aten::matmul", kProduct},
    {"aten::einsum", kProduct},
    {"aten::bilinear", kProduct},
    {"aten::convolution", kConvolution},
    {"aten::conv1d", kConvolution},
    {"aten::conv2d", kConvolution},
    {"aten::conv3d", kConvolution},
    {"aten::conv_transpose1d", kConvolution},
    {"aten::conv_transpose2d", kConvolution},
    {"aten::conv_transpose3d", kConvolution},
    {"aten::layer_norm", kNormalization},
    {"aten::native_layer_norm", kNormalization},
    {"aten::batch_norm", kNormalization},
    {"aten::native_batch_norm", kNormalization},
    {"aten::_native_batch_norm_legit", kNormalization},
    {"aten::instance_norm", kNormalization},
    {"aten::group_norm", kNormalization},
    {"aten::native_group_norm", kNormalization},
    {"aten::rms_norm", kNormalization},
    {"aten::softmax", kSoftmax},
    {"aten::_softmax", kSoftmax},
    {"aten::log_softmax", kSoftmax},
    {"aten::_log_softmax", kSoftmax},
    {"aten::logsumexp", kSoftmax},
    {"aten::scaled_dot_product_attention", kAttention},
    {"aten::max_pool1d", kPooling},
    {"aten::max_pool2d", kPooling},
    {"aten::max_pool3d", kPooling},
    {"aten::max_pool2d_with_indices", kPooling},
    {"aten::max_pool3d_with_indices", kPooling},
    {"aten::avg_pool1d", kPooling},
    {"aten::avg_pool2d", kPooling},
    {"aten::avg_pool3d", kPooling},
    {"aten::adaptive_avg_pool1d", kPooling},
    {"aten::adaptive_avg_pool2d", kPooling},
    {"aten::_adaptive_avg_pool2d", kPooling},
    {"aten::adaptive_avg_pool3d", kPooling},
    {"aten::_adaptive_avg_pool3d", kPooling},
    {"aten::adaptive_max_pool1d", kPooling},
    {"aten::adaptive_max_pool2d", kPooling},
    {"aten::adaptive_max_pool3d", kPooling},
    {"aten::upsample_nearest2d", kPooling},
    {"aten::upsample_bilinear2d", kPooling},
    {"aten::grid_sampler", kPooling},
    {"aten::lstm", kRecurrent},
    {"aten::gru", kRecurrent},
    {"aten::rnn_tanh", kRecurrent},
    {"aten::rnn_relu", kRecurrent},
    {"aten::cumsum", kScan},
    {"aten::cumprod", kScan},
    {"aten::cummax", kScan},
    {"aten::cummin", kScan},
    {"aten::topk", kScan},
    {"aten::sort", kScan},
    {"aten::argsort", kScan},
    {"aten::sum", kReduction},
    {"aten::mean", kReduction},
    {"aten::prod", kReduction},
    {"aten::amax", kReduction},
    {"aten::amin", kReduction},
    {"aten::max", kReduction},
    {"aten::min", kReduction},
    {"aten::argmax", kReduction},
    {"aten::argmin", kReduction},
    {"aten::var", kReduction},
    {"aten::var_mean", kReduction},
    {"aten::std", kReduction},
    {"aten::norm", kReduction},
    {"aten::linalg_vector_norm", kReduction},
    {"aten::all", kReduction},
    {"aten::any", kReduction},
    {"aten::embedding", kLookup},
    {"aten::gather", kLookup},
    {"aten::index_select", kLookup},
    {"aten::index", kLookup},
    {"aten::scatter", kLookup},
    {"aten::scatter_add", kLookup},
    {"aten::cat", kMovement},
    {"aten::stack", kMovement},
    {"aten::clone", kMovement},
    {"aten::contiguous", kMovement},
    {"aten::transpose", kMovement},
    {"aten::permute", kMovement},
    {"aten::flip", kMovement},
    {"aten::roll", kMovement},
    {"aten::repeat", kMovement},
    {"aten::constant_pad_nd", kMovement},
    {"aten::pad", kMovement},
    {"aten::tril", kMovement},
    {"aten::triu", kMovement},
    {"aten::relu", kPointwise},
    {"aten::gelu", kPointwise},
    {"aten::silu", kPointwise},
    {"aten::sigmoid", kPointwise},
    {"aten::tanh", kPointwise},
    {"aten::add", kPointwise},
    {"aten::sub", kPointwise},
    {"aten::mul", kPointwise},
    {"aten::div", kPointwise},
    {"aten::addcmul", kPointwise},
    {"aten::mse_loss", kLoss},
    {"aten::smooth_l1_loss", kLoss},
    {"aten::huber_loss", kLoss},
    {"aten::kl_div", kLoss},
    {"aten::nll_loss", kLoss},
    {"aten::cross_entropy_loss", kLoss},
    {"aten::cosine_similarity", kLoss},
};

}  // namespace

std::span<const LibraryCall> LibraryCalls() { return kLibraryCalls; }

}  // namespace mtmc::search
