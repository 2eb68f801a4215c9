#include "muster/core/ops/linear_combination.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <type_traits>

#include "muster/core/backend/cpu/first_bad.h"
#include "muster/core/backend/cpu/parallel.h"
#include "muster/core/backend/cpu/simd.h"
#include "muster/core/backend/cpu/weighted_sums.h"

namespace muster::cpu {
namespace {

constexpr std::int64_t kBlock = 256;      // elements whose float64 sums stay in the L1 cache
constexpr std::int64_t kGrain = 1 << 14;  // minimum elements per thread

template <typename Out, typename T>
[[gnu::always_inline]] inline void convert(Out* __restrict to, const T* __restrict from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Out>(from[i]);
}

/// Drops terms of factor 0 at both ends.
std::span<const Term> trimmed(std::span<const Term> terms) {
  while (!terms.empty() && terms.front().factor == 0) terms = terms.subspan(1);
  while (!terms.empty() && terms.back().factor == 0) terms = terms.first(terms.size() - 1);
  return terms;
}

/// Calls `use` with the elements of a tensor from `at` on.
template <typename Use>
auto withElements(const Tensor& values, std::int64_t at, Use use) {
  if (values.dtype() == DType::Float64) return use(static_cast<const double*>(values.data<double>()) + at);
  return use(static_cast<const float*>(values.data<float>()) + at);
}

void addTerm(const Term& term, bool first, double* sums, std::int64_t at, std::int64_t n) {
  withElements(term.values, at, [&]<typename T>(const T* x) {
    first ? dispatch<multiply<T>>(sums, x, term.factor, n)
          : dispatch<multiplyAdd<T>>(sums, x, term.factor, n);
  });
}

/// Copies a single term of factor 1, bit for bit if the types are equal.
template <typename Out>
void copyElements(const Tensor& values, const Tensor& out, std::int64_t begin, std::int64_t end) {
  if (values.raw() == out.raw()) return;
  withElements(values, begin, [&]<typename T>(const T* from) {
    if constexpr (std::is_same_v<T, Out>)
      dispatch<copyBlock<T>>(out.data<T>() + begin, from, end - begin);
    else
      dispatch<convert<Out, T>>(out.data<Out>() + begin, from, end - begin);
  });
}

/// Sums the terms into a block in the L1 cache, adding the last term while rounding, and writes the block if
/// it is finite. @param terms  first and last factors are not 0. @return the first non-finite element, or n.
template <typename Out>
std::int64_t combineBlock(std::span<const Term> terms, const Tensor& out, std::int64_t at, std::int64_t n) {
  alignas(64) double sums[kBlock];
  alignas(64) Out results[kBlock];
  for (const Term& term : terms.first(terms.size() - 1))
    if (term.factor != 0) addTerm(term, &term == &terms.front(), sums, at, n);
  const Term& last = terms.back();
  const auto largest = withElements(last.values, at, [&]<typename T>(const T* x) {
    const auto* const before = static_cast<const double*>(sums);
    return terms.size() == 1 ? dispatch<addLast<true, Out, T>>(&results[0], before, x, last.factor, n)
                             : dispatch<addLast<false, Out, T>>(&results[0], before, x, last.factor, n);
  });
  if (!muster::detail::isFinite<Out>(largest))
    return std::find_if(results, results + n, [](Out x) { return !std::isfinite(x); }) - results;
  dispatch<copyBlock<Out>>(out.data<Out>() + at, static_cast<const Out*>(results), n);
  return n;
}

template <typename Out>
void combine(std::span<const Term> terms, const Tensor& out, std::int64_t begin, std::int64_t end,
             FirstBad& bad) {
  if (terms.empty()) return std::fill(out.data<Out>() + begin, out.data<Out>() + end, Out{0});
  if (terms.size() == 1 && terms.front().factor == 1)
    return copyElements<Out>(terms.front().values, out, begin, end);
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    if (const std::int64_t done = combineBlock<Out>(terms, out, at, n); done < n) bad.note(at + done);
  }
}

constexpr std::int64_t kSums = 16;  // independent sums, for wide registers

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
  const auto counting = trimmed(terms);
  const auto combineTo = out.dtype() == DType::Float64 ? combine<double> : combine<float>;
  parallelFor(context, end - begin, kGrain, [&](std::int64_t from, std::int64_t to) {
    combineTo(counting, out, begin + from, begin + to, bad);
  });
  bad.check("linearCombination");
}

double innerProduct(const Tensor& a, const Tensor& b, const Tensor& origin, std::int64_t begin,
                    std::int64_t end, Context&) {
  const bool same = a.raw() == b.raw();
  const Term first{1, a}, second{1, b}, from{-1, origin};
  double sums[kSums] = {};
  for (std::int64_t at = begin; at < end; at += kBlock) {
    alignas(64) double moves[2][kBlock];  // a - origin, b - origin
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
