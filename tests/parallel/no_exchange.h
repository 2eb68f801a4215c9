#pragma once

#include "muster/parallel/exchange/exchange.h"

namespace muster::test {

/// Exchanges nothing.
class NoExchange : public Exchange {
 public:
  explicit NoExchange(int participants) : Exchange({.participants = participants}, {}) {}

  void merge(int, const SharedBlock&, std::span<const double>, Context&, Spread*) override {}
  void mean(int, const SliceMean&, Context&) override {}
  void moments(int, const SharedBlock&, std::span<const double>, double, Context&) override {}
  void mix(int, const SharedBlock&, const Mixing&, Context&) override {}
  void eachShare(int, std::int64_t, Slice, Context&, const ShareUse&) override {}
};

}  // namespace muster::test
