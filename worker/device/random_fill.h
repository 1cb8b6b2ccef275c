// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Defines what it is given, and a text of it for the compiler of another processor, so that
// both compute the same.
#define MTMC_DEFINE_AND_QUOTE(text_name, ...) \
  __VA_ARGS__                                 \
  inline constexpr char text_name[] = #__VA_ARGS__;

// Begins a function of such a text; the other compiler gets a definition of its own.
#define MTMC_SHARED inline

namespace mtmc::worker {

// Memory filled with random words: the word at a place depends on the place and on a stream
// alone, so whoever knows the stream can tell later what was written there. Tensor and
// surroundings are one row of words without a seam.
//
// RandomFill names memory in chunks of sixteen bytes, of which those from `begin` to `end` are
// the tensor; `is_alone` says that all others are its surroundings. FillChunk compares what is not
// the tensor with the stream `former` (unless that is 0), then writes words of `stream` where it is
// to, and returns how many words differed. Only the chunks VisitedChunk(fill, 0 ..
// CountVisited(fill) - 1) need be looked at.
MTMC_DEFINE_AND_QUOTE(
    kRandomFillText,

    struct alignas(16) RandomChunk { unsigned long long words[2]; };

    struct RandomFill {
      RandomChunk* chunks;
      unsigned long long num_chunks;
      unsigned long long begin;
      unsigned long long end;
      unsigned long long stream;
      unsigned long long former;
      unsigned fills_tensor;
      unsigned fills_around;
      unsigned is_alone;
    };

    MTMC_SHARED unsigned long long RandomWord(unsigned long long stream,
                                              unsigned long long position) {
      unsigned long long x = stream + position * 0x9e3779b97f4a7c15ull;
      x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
      x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
      return x ^ (x >> 32);
    }

    MTMC_SHARED unsigned long long LowBytes(long long count) {
      if (count <= 0) return 0;
      return count >= 8 ? ~0ull : (1ull << (8 * count)) - 1;
    }

    MTMC_SHARED unsigned long long BytesInside(const RandomFill& fill, unsigned long long first) {
      return LowBytes(static_cast<long long>(fill.end - first)) &
             ~LowBytes(static_cast<long long>(fill.begin - first));
    }

    MTMC_SHARED unsigned FillChunk(const RandomFill& fill, unsigned long long index) {
      const bool fills = fill.fills_tensor || fill.fills_around;
      unsigned wrong = 0;
      RandomChunk chunk;
      for (unsigned k = 0; k < 2; ++k) {
        const unsigned long long position = 2 * index + k;
        const unsigned long long inside = BytesInside(fill, 8 * position);
        const unsigned long long written =
            (fill.fills_tensor ? inside : 0) | (fill.fills_around ? ~inside : 0);
        const unsigned long long compared = fill.former ? ~inside : 0;
        unsigned long long value = fills ? RandomWord(fill.stream, position) & written : 0;
        if (compared | ~written) {
          const unsigned long long old = fill.chunks[index].words[k];
          if (compared) wrong += ((old ^ RandomWord(fill.former, position)) & compared) != 0;
          value |= old & ~written;
        }
        chunk.words[k] = value;
      }
      if (fills) fill.chunks[index] = chunk;
      return wrong;
    }

    MTMC_SHARED unsigned long long CountVisited(const RandomFill& fill) {
      if (fill.fills_tensor) return fill.num_chunks;
      return fill.begin / 16 + fill.num_chunks - fill.end / 16;
    }

    MTMC_SHARED unsigned long long VisitedChunk(const RandomFill& fill, unsigned long long i) {
      const unsigned long long front = fill.begin / 16;
      return fill.fills_tensor || i < front ? i : i - front + fill.end / 16;
    })

// A tensor inside an allocation of `total_bytes` that holds nothing else; `allocation`,
// `tensor_offset` and `total_bytes` are multiples of sixteen. Fills nothing yet.
RandomFill DescribeAllocation(uintptr_t allocation, int64_t total_bytes, int64_t tensor_offset,
                              int64_t tensor_bytes);

// A tensor amid memory of others, which stays as it is.
RandomFill DescribeView(uintptr_t tensor, int64_t tensor_bytes);

// The stream of the buffer at a position among those that are filled with one seed; not 0.
uint64_t StreamOf(uint64_t seed, uint64_t position);

// A new seed, which nobody can foresee; not 0.
uint64_t DrawSeed();

}  // namespace mtmc::worker
