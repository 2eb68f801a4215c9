#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/ops/count_non_finite.h"

namespace muster {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Blocks that are not merged may hold other numbers.
bool isReal(const Tensor& tensor) {
  return (tensor.dtype() == DType::Float32 || tensor.dtype() == DType::Float64) &&
         tensor.layout() == Layout::RowMajor;
}

std::vector<Context*> contextsOf(auto& groups) {
  std::vector<Context*> contexts;
  for (const auto& group : groups) contexts.push_back(group.context.get());
  return contexts;
}

}  // namespace

DeviceExchange::Group::Group(const DeviceGroup& where)
    : workers(where.workers.begin(), where.workers.end()),
      context(std::make_unique<Context>(where.device, ContextOptions{.layers = false})),
      merged(*context),
      distances(
          Tensor::empty({static_cast<std::int64_t>(workers.size()) + 1}, DType::Float64, where.device)) {}

DeviceExchange::DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                               MergePlan plan, std::vector<Tensor> refused,
                               std::optional<TransportKind> failing)
    : plan_(std::move(plan)),
      blocks_(sharedBlocks(states, updaterState, plan_.groupOf())),
      groups_(plan_.groups().begin(), plan_.groups().end()),
      reduction_(plan_, contextsOf(groups_), blocks_, failing),
      alone_(plan_.groupOf().size()),
      refused_(std::move(refused)),
      kept_(*groups_.front().context) {
  // Not guarded: Reset, which always writes zeros, and merges over devices, whose sums form in several
  // places.
  const auto unguarded = [](const SharedBlock& block) {
    return block.hasMergedCopy() && block.rule == MergeRule::Reset;
  };
  const bool several = groups_.size() > 1, resets = std::ranges::any_of(blocks_, unguarded);
  const bool guardable = !refused_.empty() && std::ranges::all_of(refused_, &Tensor::defined);
  if (guardable && (several || resets))
    log(LogLevel::Debug,
        fmt::format("merges wait for the scores of the steps before them: {}",
                    several ? "the workers are on several devices" : "they set the updater's state to zero"));
  if (!guardable || several || resets) refused_.clear();
  for (const int g : plan_.groupOf()) arrivals_.emplace_back(*groups_[at(g)].context);
  aborted_ = true;
  restart();
}

void DeviceExchange::restart() {
  if (aborted_) reduction_.connect();
  aborted_ = broken_ = keeping_ = false;
  whole_ = keptWhole_ = true;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
  if (refused_.empty()) return;
  for (Tensor& refused : refused_) muster::setZero(refused, *groups_.front().context);
  groups_.front().context->synchronize();  // the replicas' next steps write these flags
}

void DeviceExchange::abort() noexcept {
  // Copies end by themselves, but NCCL's transfers wait for all devices, one of which may be lost.
  if (!reduction_.waitsForAll()) return;
  if (!aborted_.exchange(true)) try {
      if (!whole_ || !groups_.front().merged.complete()) broken_ = true;
      keptWhole_ = !keeping_ && kept_.complete();
    } catch (...) {  // the device is lost
      broken_ = true;
      keptWhole_ = false;
    }
  reduction_.abort();
}

void DeviceExchange::arrive(int participant, Context& context) {
  arrivals_[at(participant)].record(context);
}

void DeviceExchange::begin(int participant) {
  if (participant != 0) return;
  whole_ = false;
  for (const auto& group : groups_)
    for (const std::size_t w : group.workers) arrivals_[w].waitOn(*group.context);
}

void DeviceExchange::end(int participant) {
  if (participant != 0) return;
  if (checks_) {
    Context& context = *groups_.front().context;
    muster::setZero(nonFinite_, context);
    for (const auto& copy : backup_.copies())
      if (isReal(*copy.live)) countNonFinite(*copy.live, nonFinite_, context);
    copy(nonFinite_, nonFiniteHere_, context);
  }
  for (auto& group : groups_) group.merged.record(*group.context);
  whole_ = true;
}

void DeviceExchange::enqueueAfter(int participant, Context& context) {
  groups_[at(plan_.groupOf()[at(participant)])].merged.waitOn(context);
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const auto& group : groups_) group.merged.wait();
  kept_.wait();
  // No event was recorded after the work that a failed merge has enqueued.
  if (!whole_)
    for (const auto& group : groups_) group.context->synchronize();
}

void DeviceExchange::keepMerges(bool statisticsAlone) {
  backup_.make(*this, statisticsAlone);
  statisticsAlone_ = statisticsAlone;
}

void DeviceExchange::checkMerges() {
  nonFinite_ = Tensor::zeros({1}, DType::Float64, groups_.front().context->device());
  nonFiniteHere_ = Tensor::pinned({1}, DType::Float64);
  *nonFiniteHere_.data<double>() = 0;
  checks_ = true;
}

/// Hardly waits: workers call it after they have read the score of a step that came after the merge.
void DeviceExchange::requireFinite() const {
  if (!checks_) return;
  groups_.front().merged.wait();
  if (!foundNonFinite()) return;
  std::string name = "state";
  for (const auto& copy : backup_.copies()) {
    if (!isReal(*copy.live)) continue;
    Context onCpu;
    Tensor count = Tensor::zeros({1}, DType::Float64);
    countNonFinite(copyTo(*copy.live, Device::cpu()), count, onCpu);
    if (*count.data<double>() > 0) {
      name = copy.name;
      break;
    }
  }
  throw NonFiniteScore(fmt::format("the last merge has written numbers that are not finite, in {}", name));
}

void DeviceExchange::keepAll() {
  requireFinite();
  // A worker that has no more batches comes here while the merge before is in flight, and another worker's
  // failure may abort that merge. Then either `abort` sees that copies are being made, or none is made, and
  // those from before that merge stay.
  keeping_ = true;
  if (aborted_) {
    keeping_ = false;
    return;
  }
  Context& context = *groups_.front().context;
  backup_.keep(context);
  kept_.record(context);
  keeping_ = false;
}

bool DeviceExchange::revert() {
  if (!keepsMerges() || (broken_ && (statisticsAlone_ || !keptWhole_))) return false;
  Context& context = *groups_.front().context;
  backup_.restore(context);
  context.synchronize();
  whole_ = true;
  broken_ = false;
  if (checks_) *nonFiniteHere_.data<double>() = 0;
  return true;
}

}  // namespace muster
