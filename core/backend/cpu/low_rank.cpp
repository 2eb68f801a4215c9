#include "muster/core/ops/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/ops/delta_coding_rules.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kMostRank = LowRankMatrix::kMostRank;
constexpr std::int64_t kColumns = 64;     // columns whose sums stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

std::int64_t grain(std::int64_t elementsEach) {
  return std::max<std::int64_t>(1, kGrain / elementsEach);
}

/// Gram-Schmidt: makes each column orthogonal to earlier ones and of length 1, or 0 if only rounding errors
/// remain.
template <typename T>
void orthonormalise(const LowRankMatrix& m, const T* mean, T* p) {
  for (std::int64_t k = 0; k < m.rank; ++k) {
    double before = 0;
    for (std::int64_t i = 0; i < m.rows; ++i) {
      p[i * m.rank + k] = mean[i * m.rank + k];
      before += static_cast<double>(p[i * m.rank + k]) * static_cast<double>(p[i * m.rank + k]);
    }
    for (std::int64_t j = 0; j < k; ++j) {
      double dot = 0;
      for (std::int64_t i = 0; i < m.rows; ++i)
        dot += static_cast<double>(p[i * m.rank + j]) * static_cast<double>(p[i * m.rank + k]);
      for (std::int64_t i = 0; i < m.rows; ++i)
        p[i * m.rank + k] = static_cast<T>(p[i * m.rank + k] - dot * p[i * m.rank + j]);
    }
    double after = 0;
    for (std::int64_t i = 0; i < m.rows; ++i)
      after += static_cast<double>(p[i * m.rank + k]) * static_cast<double>(p[i * m.rank + k]);
    const double scale = coding::inverseLength(before, after);
    for (std::int64_t i = 0; i < m.rows; ++i) p[i * m.rank + k] = static_cast<T>(scale * p[i * m.rank + k]);
  }
}

template <typename T>
void project(const LowRankMatrix& m, const coding::Move<T>& move, const T* q, T* p, Context& context) {
  parallelFor(context, m.rows, grain(m.columns), [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      std::array<double, kMostRank> sums{};
      for (std::int64_t c = 0; c < m.columns; ++c) {
        const double v = move.at(m.offset + i * m.columns + c);
        for (std::int64_t k = 0; k < m.rank; ++k)
          sums[static_cast<std::size_t>(k)] +=
              v * coding::started(static_cast<double>(q[c * m.rank + k]), c, k);
      }
      for (std::int64_t k = 0; k < m.rank; ++k)
        p[i * m.rank + k] = static_cast<T>(sums[static_cast<std::size_t>(k)]);
    }
  });
}

/// Q = V^T P for columns [from, to) of V.
template <typename T>
void transposedProduct(const LowRankMatrix& m, const coding::Move<T>& move, const T* p, T* q,
                       std::int64_t from, std::int64_t to) {
  std::array<double, static_cast<std::size_t>(kColumns * kMostRank)> sums;
  for (std::int64_t begin = from; begin < to; begin += kColumns) {
    const std::int64_t end = std::min(begin + kColumns, to);
    sums.fill(0);
    for (std::int64_t i = 0; i < m.rows; ++i)
      for (std::int64_t c = begin; c < end; ++c) {
        const double v = move.at(m.offset + i * m.columns + c);
        for (std::int64_t k = 0; k < m.rank; ++k)
          sums[static_cast<std::size_t>((c - begin) * m.rank + k)] +=
              v * static_cast<double>(p[i * m.rank + k]);
      }
    for (std::int64_t n = 0; n < (end - begin) * m.rank; ++n)
      q[begin * m.rank + n] = static_cast<T>(sums[static_cast<std::size_t>(n)]);
  }
}

template <typename T>
void code(const LowRankMatrix& m, const coding::Move<T>& move, const T* mean, T* p, T* q, Context& context) {
  orthonormalise(m, mean, p);
  parallelFor(context, m.columns, grain(m.rows),
              [&](std::int64_t from, std::int64_t to) { transposedProduct(m, move, p, q, from, to); });
  parallelFor(context, m.rows, grain(m.columns), [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i)
      for (std::int64_t c = 0; c < m.columns; ++c) {
        const std::int64_t at = m.offset + i * m.columns + c;
        move.send(at, move.at(at), coding::product(p + i * m.rank, q + c * m.rank, m.rank));
      }
  });
}

template <typename F>
void withType(const Tensor& like, F f) {
  like.dtype() == DType::Float64 ? f(double{}) : f(float{});
}

}  // namespace

void projectDelta(const LowRankMatrix& matrix, const Tensor& values, const Tensor& sent,
                  const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  withType(values, [&]<typename T>(T) {
    const coding::Move<T> move{values.data<T>(), sent.data<T>(), residual.data<T>(), 1};
    project(matrix, move, means.data<T>() + matrix.right(), factors.data<T>() + matrix.offset, context);
  });
}

void codeLowRank(const LowRankMatrix& matrix, double remember, const Tensor& values, const Tensor& sent,
                 const Tensor& residual, const Tensor& means, const Tensor& factors, Context& context) {
  withType(values, [&]<typename T>(T) {
    const coding::Move<T> move{values.data<T>(), sent.data<T>(), residual.data<T>(), remember};
    code(matrix, move, means.data<T>() + matrix.offset, factors.data<T>() + matrix.offset,
         factors.data<T>() + matrix.right(), context);
  });
}

void decodeLowRank(const LowRankMatrix& m, const Tensor& sent, const Tensor& means, const Tensor& factors,
                   Context& context) {
  withType(sent, [&]<typename T>(T) {
    T *const to = sent.data<T>() + m.offset, *const p = factors.data<T>() + m.offset;
    const T* const q = factors.data<T>() + m.right();
    orthonormalise(m, means.data<T>() + m.offset, p);
    parallelFor(context, m.rows, grain(m.columns), [&](std::int64_t from, std::int64_t end) {
      for (std::int64_t i = from; i < end; ++i)
        for (std::int64_t c = 0; c < m.columns; ++c) {
          T& value = to[i * m.columns + c];
          value = static_cast<T>(static_cast<double>(value) +
                                 coding::product(p + i * m.rank, q + c * m.rank, m.rank));
        }
    });
  });
}

}  // namespace muster::cpu
