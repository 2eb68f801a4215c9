#include "muster/core/ops/linear_combination.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "muster/core/backend/cpu/first_bad.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weighted_sums.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kBlock = 256;      // elements whose float64 sums stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // least elements a thread

template <typename T>
[[gnu::always_inline]] inline void round(T* __restrict out, const double* __restrict sums, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[i]);
}

/// Numbers from here on are not finite once they are rounded: for float32 halfway from the largest to the
/// next power of two.
template <typename T>
constexpr double kBeyond = sizeof(T) == 4 ? 0x1.ffffffp127 : std::numeric_limits<double>::infinity();

template <typename T>
[[gnu::always_inline]] inline bool allFit(const double* __restrict sums, std::int64_t n) {
  std::int64_t beyond = 0;
  for (std::int64_t i = 0; i < n; ++i) beyond |= std::fabs(sums[i]) < kBeyond<T> ? 0 : 1;
  return beyond == 0;
}

/// Rounds a block, unless a result is not finite. @return that element, or n.
template <typename T>
std::int64_t roundBlock(const Tensor& out, const double* sums, std::int64_t at, std::int64_t n, bool copies) {
  if (!copies && !dispatch<allFit<T>>(sums, n))
    return std::find_if(sums, sums + n, [](double x) { return !(std::fabs(x) < kBeyond<T>); }) - sums;
  dispatch<round<T>>(out.data<T>() + at, sums, n);
  return n;
}

/// One term of factor 1: whatever bits it has.
bool copies(std::span<const Term> terms) {
  const auto counts = [](const Term& term) { return term.factor != 0; };
  const auto first = std::ranges::find_if(terms, counts);
  return first != terms.end() && first->factor == 1 &&
         std::find_if(first + 1, terms.end(), counts) == terms.end();
}

void addTerm(const Term& term, bool first, double* sums, std::int64_t at, std::int64_t n) {
  if (term.values.dtype() == DType::Float64) {
    const auto* const x = term.values.data<double>() + at;
    first ? dispatch<multiply<double>>(sums, x, term.factor, n)
          : dispatch<multiplyAdd<double>>(sums, x, term.factor, n);
  } else {
    const auto* const x = term.values.data<float>() + at;
    first ? dispatch<multiply<float>>(sums, x, term.factor, n)
          : dispatch<multiplyAdd<float>>(sums, x, term.factor, n);
  }
}

constexpr std::int64_t kSums = 16;  // independent ones, for wide registers

/// Adds the product of element i to sum i mod kSums.
[[gnu::always_inline]] inline void addProducts(double* __restrict sums, const double* __restrict a,
                                               const double* __restrict b, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::int64_t lane = 0; lane < kSums; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) sums[i % kSums] += a[i] * b[i];
}

}  // namespace

void linearCombination(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
                       Context& context) {
  FirstBad bad;
  const bool copied = copies(terms);
  const auto roundTo = out.dtype() == DType::Float64 ? roundBlock<double> : roundBlock<float>;
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    alignas(64) double sums[kBlock];
    for (std::int64_t at = begin + from; at < begin + to; at += kBlock) {
      const std::int64_t n = std::min(kBlock, begin + to - at);
      bool first = true;
      for (const Term& term : terms) {
        if (term.factor == 0) continue;
        addTerm(term, first, sums, at, n);
        first = false;
      }
      if (first) std::fill_n(sums, n, 0.0);
      if (const std::int64_t done = roundTo(out, sums, at, n, copied); done < n) bad.note(at + done);
    }
  });
  bad.check("linearCombination");
}

double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context&) {
  const bool same = a.raw() == b.raw();
  const Term first{1, a}, second{1, b}, from{-1, origin};
  double sums[kSums] = {};
  for (std::int64_t at = begin; at < end; at += kBlock) {
    alignas(64) double moves[2][kBlock];  // of a and b
    const std::int64_t n = std::min(kBlock, end - at);
    const auto load = [&](const Term& values, double* to) {
      addTerm(values, true, to, at, n);
      if (origin.defined()) addTerm(from, false, to, at, n);
    };
    load(first, moves[0]);
    if (!same) load(second, moves[1]);
    dispatch<addProducts>(sums, static_cast<const double*>(moves[0]),
                          static_cast<const double*>(same ? moves[0] : moves[1]), n);
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

}  // namespace muster::cpu
