#include "muster/core/backend/cpu/dropout_loops.h"

namespace muster::cpu::drop {

void avx512Rows(const Rule& rule, std::uint64_t index, const float* x, float* y, std::int64_t rows,
                std::int64_t features) {
  dropRows(rule, index, x, y, rows, features);
}

}  // namespace muster::cpu::drop
