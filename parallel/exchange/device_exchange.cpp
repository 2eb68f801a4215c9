#include "muster/parallel/exchange/device_exchange.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"

namespace muster {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
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
    : Exchange({.participants = static_cast<int>(plan.groupOf().size()),
                .senders = static_cast<int>(plan.groupOf().size()),
                .onePlace = plan.groups().size() == 1,
                .checksResults = false},
               sharedBlocks(states, updaterState, plan.groupOf())),
      plan_(std::move(plan)),
      groups_(plan_.groups().begin(), plan_.groups().end()),
      reduction_(plan_, contextsOf(groups_), blocks_, failing),
      alone_(plan_.groupOf().size()),
      refused_(std::move(refused)) {
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
  topology_.guardsMerges = !refused_.empty();
  for (const int g : plan_.groupOf()) arrivals_.emplace_back(*groups_[at(g)].context);
  status_.aborted = true;
  restart();
}

void DeviceExchange::restart() {
  if (status_.aborted) reduction_.connect();
  status_.aborted = status_.broken = false;
  status_.whole = true;
  if (undo_) undo_->restart();
  if (refused_.empty()) return;
  for (Tensor& refused : refused_) muster::setZero(refused, *groups_.front().context);
  groups_.front().context->synchronize();  // the replicas' next steps write these flags
}

void DeviceExchange::abort() noexcept {
  // Copies end by themselves, but NCCL's transfers wait for all devices, one of which may be lost.
  if (!reduction_.waitsForAll()) return;
  if (!status_.aborted.exchange(true)) try {
      if (!status_.whole || !groups_.front().merged.complete()) status_.broken = true;
      if (undo_) undo_->noteAbort();
    } catch (...) {  // the device is lost
      status_.broken = true;
      if (undo_) undo_->lose();
    }
  reduction_.abort();
}

void DeviceExchange::arrive(int participant, Context& context) {
  arrivals_[at(participant)].record(context);
}

void DeviceExchange::begin(int participant) {
  if (participant != 0) return;
  status_.whole = false;
  for (const auto& group : groups_)
    for (const std::size_t w : group.workers) arrivals_[w].waitOn(*group.context);
}

void DeviceExchange::end(int participant) {
  if (participant != 0) return;
  if (undo_) undo_->check();
  for (auto& group : groups_) group.merged.record(*group.context);
  status_.whole = true;
}

void DeviceExchange::enqueueAfter(int participant, Context& context) {
  groups_[at(plan_.groupOf()[at(participant)])].merged.waitOn(context);
}

void DeviceExchange::wait() {
  for (const auto& arrival : arrivals_) arrival.wait();
  for (const auto& group : groups_) group.merged.wait();
  if (undo_) undo_->wait();
  // No event was recorded after the work that a failed merge has enqueued.
  if (!status_.whole)
    for (const auto& group : groups_) group.context->synchronize();
}

/// If NCCL connects the devices, an abort may leave a merge half done whose operations have all returned.
std::unique_ptr<MergeUndo> DeviceExchange::makeUndo(MergeUndo::Options options) {
  options.everyMerge =
      options.everyMerge || (options.allState && (options.mayOverflow || reduction_.waitsForAll()));
  const Group& first = groups_.front();
  auto undo = std::make_unique<DeviceUndo>(*this, options, status_, *first.context, first.merged);
  undo_ = undo.get();
  return undo;
}

}  // namespace muster
