#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/tensor_parts.h"

namespace muster {

/// into = keep * into + the sum of the groups, over a slice on the CPU. Each group's sum is rounded to
/// float64 before the groups are added up, as nodes do, and the result once to the type of `into`.
/// @param termsOf  `std::span<const Term> (std::size_t group, Slice piece)`: the terms of a group, of these
///                 elements; groups without terms do not count. Valid until the next call.
/// @throws NonFiniteResult of `op`.
template <typename TermsOf>
void addGroups(std::string_view op, std::size_t groups, TermsOf termsOf, double keep, const Tensor& into,
               Slice slice, Context& context) {
  constexpr std::int64_t kStep = 1024;  // elements whose sums stay in the L1 cache
  alignas(64) std::array<double, kStep> sums, groupSums;
  for (std::int64_t at = slice.begin; at < slice.end; at += kStep) {
    const Slice piece{at, std::min(slice.end, at + kStep)};
    const std::int64_t length = piece.length();
    const Tensor sum = Tensor::view(sums.data(), {length}, DType::Float64),
                 groupSum = Tensor::view(groupSums.data(), {length}, DType::Float64);
    atElement(at, op, [&] {
      bool first = true;
      for (std::size_t g = 0; g < groups; ++g) {
        const std::span<const Term> terms = termsOf(g, piece);
        if (terms.empty()) continue;
        linearCombination(terms, first ? sum : groupSum, 0, length, context);
        const std::array both{Term{1, sum}, Term{1, groupSum}};
        if (!first) linearCombination(both, sum, 0, length, context);
        first = false;
      }
      const Tensor result = part(into, piece);
      const std::array all{Term{1, sum}, Term{keep, result}};
      linearCombination(std::span(all).first(keep > 0 ? 2 : 1), result, 0, length, context);
    });
  }
}

}  // namespace muster
