#pragma once

#include <cstdint>

// For files compiled for one instruction set each: nothing here may include inline library functions, because
// the linker could use such a copy in the whole program.

namespace muster::cpu::drop {

/// What a random stream's words depend on besides the index, Philox's constants, and what becomes of
/// elements.
struct Rule {
  std::uint64_t epoch;
  std::uint32_t key[2], factors[2], steps[2];
  std::uint32_t threshold;  // an element whose random word is smaller becomes zero
  float scale;              // of the remaining elements
};

/// Drops elements of rows. Each index of the random stream gives numbers for four elements; every row begins
/// with an index of its own, the first one with `index`.
using Rows = void (*)(const Rule& rule, std::uint64_t index, const float* x, float* y, std::int64_t rows,
                      std::int64_t features);

void baselineRows(const Rule&, std::uint64_t, const float*, float*, std::int64_t, std::int64_t);
void avx2Rows(const Rule&, std::uint64_t, const float*, float*, std::int64_t, std::int64_t);
void avx512Rows(const Rule&, std::uint64_t, const float*, float*, std::int64_t, std::int64_t);

}  // namespace muster::cpu::drop
