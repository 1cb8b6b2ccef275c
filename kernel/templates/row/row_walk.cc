// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_walk.h"

#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {

RowWalk::RowWalk(const RowSpace& space, const RowThreads& threads, Part part, KernelWriter& writer)
    : space_(space), threads_(threads), part_(part), writer_(writer) {
  if (!threads_.is_alone()) {
    writer_.Line(Concat("const int thread = ", writer_.text().ThreadId(0), ";"));
  }
  const bool has_pieces = part_ == Part::kPiece;
  const std::string block = has_pieces
                                ? Concat(writer_.text().BlockId(0), " / ", threads_.map.split)
                                : writer_.text().BlockId(0);
  if (has_pieces) {
    writer_.Line(
        Concat("const int piece = ", writer_.text().BlockId(0), " % ", threads_.map.split, ";"));
  }
  const std::string pieces = has_pieces ? Concat(" * ", threads_.map.split) : "";
  if (threads_.by_row() && part_ != Part::kPieces) {
    const int64_t chunks = space_.rows / threads_.lanes;
    const int64_t width = threads_.map.block / threads_.map.depth;
    std::string position = Concat(block, width > 1 ? Concat(" * ", width) : "",
                                  threads_.map.depth > 1 ? Concat(" + thread % ", width)
                                  : threads_.is_alone()  ? ""
                                                         : " + thread");
    // Threads beyond the last row repeat it: all take part in the barriers, and
    // equal values are written twice.
    if (chunks % width != 0) {
      position = Concat("min((int)(", position, "), ", chunks - 1, ")");
    }
    if (threads_.map.depth > 1) writer_.Line(Concat("const int slice = thread / ", width, ";"));
    const ScalarPtr chunk =
        writer_.Declare(threads_.has_lanes() ? "row_chunk" : "row", chunks, position);
    row_axis_ = chunk->axis;
    lane_ = threads_.has_lanes() ? writer_.Axis("v", threads_.lanes) : Index(0);
    row_ = Add(Mul(chunk, Index(threads_.lanes)), lane_);
    outer_ = space_.outer;
    inner_ = space_.inner;
    grid_ = Concat("ceil_div(", chunks, ", ", width, ")", pieces);
  } else {
    row_ = writer_.Declare("row", space_.rows, block);
    row_axis_ = row_->axis;
    lane_ = threads_.has_lanes() ? writer_.Axis("v", threads_.lanes) : Index(0);
    outer_ = space_.outer;
    inner_ = space_.inner / threads_.lanes;
    // Runs shorter than the block would leave threads idle.
    if (outer_ > 1 && (inner_ < threads_.map.block || threads_.map.cache != 0)) {
      inner_ *= outer_;
      outer_ = 1;
    }
    grid_ = Concat(space_.rows, pieces);
  }
  const ScalarPtr o = outer_ > 1 ? writer_.Axis("o", outer_) : Index(0);
  const ScalarPtr k = writer_.Axis(threads_.by_row() ? "k" : "c", inner_);
  const ScalarPtr within = threads_.by_row() ? k : Add(Mul(k, Index(threads_.lanes)), lane_);
  step_axis_ = k->axis;
  column_ = Add(Mul(o, Index(threads_.by_row() ? inner_ : inner_ * threads_.lanes)), within);
  const int64_t step = threads_.by_row() ? threads_.map.depth : threads_.map.block;
  steps_ = (inner_ + step - 1) / step;
  keeps_ =
      threads_.map.cache != 0 && part_ == Part::kWhole && outer_ == 1 && !threads_.is_block_tuned;
}

int64_t RowWalk::steps_in_a_row() const {
  if (part_ == Part::kPieces) return 1;
  const int64_t pieces = part_ == Part::kPiece ? threads_.map.split : 1;
  return (outer_ * steps_ + pieces - 1) / pieces;
}

std::string RowWalk::LoopHead(const std::string& variable, const std::string& first, int64_t count,
                              const std::string& step) const {
  const std::string type =
      count > INT32_MAX / 2 ? writer_.text().ComputeType(DataType::kI64) : "int";
  const std::string advance = step == "1" ? Concat("++", variable) : Concat(variable, " += ", step);
  return Concat("for (", type, " ", variable, " = ", first, "; ", variable, " < ",
                writer_.text().IntegerLiteral(count, DataType::kI64), "; ", advance, ")");
}

void RowWalk::Open() {
  open_scopes_ = 0;
  const auto open = [&](const std::string& head) {
    writer_.Open(head);
    ++open_scopes_;
  };
  const std::string variable = threads_.by_row() ? "k" : "c";
  const std::string thread =
      threads_.by_row() ? (threads_.map.depth > 1 ? "slice" : "0") : threads_.index();
  const std::string step = threads_.by_row() ? std::to_string(threads_.map.depth) : threads_.count;
  const bool has_pieces = part_ == Part::kPiece;
  const bool splits_outer = has_pieces && outer_ >= threads_.map.split;
  if (outer_ > 1) {
    open(splits_outer ? LoopHead("o", "piece", outer_, std::to_string(threads_.map.split))
                      : LoopHead("o", "0", outer_, "1"));
  }
  if (keeps_) {
    if (threads_.is_gpu) writer_.Unroll();
    open(LoopHead("j", "0", steps_, "1"));
    writer_.Line(Concat("const int ", variable, " = j * ", step, " + ", thread, ";"));
    const int64_t width = threads_.by_row() ? threads_.map.depth : threads_.map.block;
    if (inner_ % width != 0) open(Concat("if (", variable, " < ", inner_, ")"));
  } else if (has_pieces && !splits_outer) {
    const std::string first =
        thread == "0" ? Concat("piece * ", step) : Concat("piece * ", step, " + ", thread);
    open(LoopHead(variable, first, inner_, Concat(step, " * ", threads_.map.split)));
  } else {
    // A thread alone on its rows needs several loads in flight.
    if (threads_.is_gpu && threads_.by_row() && writer_.text().is_cuda())
      writer_.Line("#pragma unroll 8");
    open(LoopHead(variable, thread, inner_, step));
  }
}

void RowWalk::Close() {
  while (open_scopes_-- > 0) writer_.Close();
}

}  // namespace mtmc::kernel
