#include "tests/support/toy_data.h"

#include <random>

namespace muster::test {

ToyIterator ToyIterator::ofValues(const std::vector<float>& values) {
  std::vector<ToyBatch> batches;
  for (const float value : values) batches.push_back({{value}});
  return ToyIterator(std::move(batches));
}

void ToyIterator::reset(std::int64_t epoch) {
  resets.push_back(epoch);
  epoch_ = epoch;
  next_ = 0;
  if (onReset) onReset(epoch);
}

bool ToyIterator::next(Batch& batch) {
  if (onNext) onNext(epoch_, static_cast<std::int64_t>(next_));
  if (next_ == batches_.size()) return false;
  const ToyBatch& source = batches_[next_++];
  const std::int64_t examples = static_cast<std::int64_t>(source.values.size()) / width_;
  std::ranges::copy(source.values, Batch::ensureOnly(batch.features, "x", {examples, width_}).data<float>());
  batch.labels.clear();
  if (source.mask.empty()) {
    batch.masks.clear();
    return true;
  }
  const auto masked = static_cast<std::int64_t>(source.mask.size());
  std::ranges::copy(source.mask, Batch::ensureOnly(batch.masks, "mask", {masked}).data<float>());
  return true;
}

std::int64_t ToyIterator::moveOn(std::int64_t batches) {
  std::int64_t values = 0;
  for (; batches > 0 && next_ < batches_.size(); --batches)
    values += static_cast<std::int64_t>(batches_[next_++].values.size());
  return values / width_;
}

std::vector<ToyBatch> randomBatches(std::uint64_t seed, int count, std::int64_t examples, std::int64_t width,
                                    bool ragged) {
  std::mt19937_64 draw(seed);
  std::vector<ToyBatch> batches(static_cast<std::size_t>(count));
  for (auto& batch : batches) {
    const std::int64_t n =
        ragged ? 1 + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(examples)) : examples;
    for (std::int64_t i = 0; i < n * width; ++i)
      batch.values.push_back(static_cast<float>(static_cast<double>(draw() >> 40) / (1 << 23) - 1));
  }
  return batches;
}

std::vector<ToyBatch> joined(const std::vector<ToyBatch>& batches, std::size_t group) {
  std::vector<ToyBatch> result;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (b % group == 0) result.emplace_back();
    result.back().values.insert(result.back().values.end(), batches[b].values.begin(),
                                batches[b].values.end());
  }
  return result;
}

void RandomDelays::operator()() {
  std::uint64_t draw = 0;
  {
    std::scoped_lock lock(mutex_);
    draw = random_();
  }
  if (draw % 3 == 0) return;
  std::this_thread::sleep_for(
      std::chrono::microseconds((draw >> 8) % static_cast<std::uint64_t>(longest_.count() + 1)));
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  visited_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return open_; });
}

void Gate::open() {
  std::scoped_lock lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::awaitVisitor() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return visited_; });
}

}  // namespace muster::test
