#pragma once

#include "muster/parallel/exchange/exchange.h"

namespace muster::test {

/// Exchanges nothing.
class NoExchange : public Exchange {
 public:
  explicit NoExchange(int participants) : participants_(participants) {}

  int participants() const override { return participants_; }
  std::span<const SharedBlock> blocks() const override { return {}; }
  void merge(int, const SharedBlock&, std::span<const double>, Context&, Spread*) override {}
  void mean(int, std::span<const Tensor>, std::span<const double>, double, Slice, std::span<const Tensor>,
            Context&) override {}
  void moments(int, const SharedBlock&, std::span<const double>, double, Context&) override {}
  void mix(int, const SharedBlock&, const Mixing&, Context&) override {}
  void eachShare(int, std::int64_t, Slice, Context&, ShareUse) override {}

 private:
  int participants_;
};

}  // namespace muster::test
