#include "muster/parallel/evaluation/evaluation_run.h"

#include <algorithm>
#include <array>
#include <utility>

#include "muster/core/data/output_names.h"
#include "muster/core/device/memory_room.h"
#include "muster/parallel/evaluation/state_loan.h"
#include "muster/parallel/runtime/watched_iterator.h"
#include "muster/parallel/training/memory_need.h"

namespace muster {

EvaluationRun::EvaluationRun(Model& model, std::optional<Task> task, std::span<ReplicaThread* const> threads,
                             std::int64_t batchesAhead, NodeLink* link, Exchange* exchange, std::string root)
    : description_(&model.inputDescription()),
      task_(task),
      link_(link),
      exchange_(exchange),
      root_(std::move(root)),
      threads_(threads),
      batches_(threads.size() + static_cast<std::size_t>(batchesAhead)),
      counts_(threads.size()),
      free_(batches_.size()) {
  for (const auto* block : model.state()) state_.push_back(block->values);
  model.context().synchronize();
  for (auto& batch : batches_) free_.push(&batch);
  for (std::size_t r = 0; r < threads.size(); ++r)
    queues_.push_back(std::make_unique<BoundedQueue<Batch*>>(batches_.size()));
}

AnyEvaluation EvaluationRun::evaluate(DataSetIterator& data, Activity& caller, Batch* first) {
  Tasks tasks;
  for (std::size_t r = 0; r < threads_.size(); ++r)
    threads_[r]->addTo(tasks, Activity::Kind::Replicating, [this, r] { work(static_cast<int>(r)); });
  tasks.start();
  deal(data, caller, first);
  tasks.wait();
  return result();
}

void EvaluationRun::failInBatch(std::int64_t sequence, int replica) noexcept {
  failure_.set(
      replica, std::current_exception(),
      [&] { return fmt::format("evaluate: {} failed in batch {}", threads_[replica]->name(), sequence + 1); },
      sequence);
}

void EvaluationRun::requireRoomForBatches(const Batch& first, std::int64_t batches) noexcept {
  try {
    const auto more = std::min(batches, static_cast<std::int64_t>(batches_.size())) - 1;
    requireMemoryRoom(static_cast<double>(bytesOf(first)) * static_cast<double>(more),
                      "the batches of an evaluation take", "smaller batches and fewer workers need less",
                      root_);
  } catch (...) {
    failure_.set(
        -1, std::current_exception(), [] { return "evaluate: out of memory"; }, first.stamp.sequence);
  }
}

void EvaluationRun::deal(DataSetIterator& iterator, Activity& caller, Batch* first) {
  description_ = &knownDescription(*description_, iterator);
  WatchedIterator data(iterator, caller, first);
  BatchStamp stamp;
  const std::int64_t nodes = link_ ? link_->nodes() : 1, node = link_ ? link_->node() : 0;
  try {
    data.reset(0);
    while (!failure_) {
      if (stamp.sequence % nodes != node) {
        const std::int64_t skipped = data.skipOne(static_cast<int>(node));
        if (skipped == 0) break;
        stamp.firstExample += skipped;
        ++stamp.sequence;
        continue;
      }
      caller.set(Activity::Kind::WaitingForRoom);
      Batch& batch = **free_.pop();
      if (!data.next(batch)) break;
      batch.stamp = stamp;
      if (stamp.sequence == node) {
        const auto all = iterator.batchesPerEpoch();
        requireRoomForBatches(batch, all ? (*all + nodes - 1 - node) / nodes : FirstFailure::kNever);
      }
      stamp.firstExample += batch.examples();
      queues_[static_cast<std::size_t>(stamp.sequence / nodes) % queues_.size()]->push(&batch);
      ++stamp.sequence;
    }
  } catch (...) {
    failure_.set(
        -1, std::current_exception(), [&] { return "evaluate: " + data.failure(); }, stamp.sequence);
  }
  for (auto& queue : queues_) queue->close();  // so that the threads end their work
  caller.set(Activity::Kind::WaitingForWorkers);
}

void EvaluationRun::work(int replica) noexcept {
  try {
    const StateLoan loan(threads_[replica]->replica(), state_, root_);
    countBatches(replica);
  } catch (...) {
    constexpr std::int64_t kBeforeAnyBatch = -1;
    failure_.set(
        replica, std::current_exception(),
        [&] {
          return fmt::format("evaluate: {} could not take the model's state", threads_[replica]->name());
        },
        kBeforeAnyBatch);
    countBatches(replica);  // counts nothing now, but gives the batches back
  }
}

void EvaluationRun::countBatches(int replica) {
  auto& thread = *threads_[replica];
  for (;;) {
    thread.activity().set(Activity::Kind::WaitingForData);
    const auto next = queues_[replica]->pop();
    if (!next) return;
    Batch& batch = **next;
    const std::int64_t sequence = batch.stamp.sequence;
    // Batches before a failed one are still evaluated: if another fails, too, the earlier failure is
    // reported.
    if (sequence < failure_.at()) try {
        thread.activity().set(Activity::Kind::Computing, sequence);
        evaluateBatch(thread.replica(), batch, counts_[replica], task_);
      } catch (...) {
        failInBatch(sequence, replica);
      }
    free_.push(&batch);
  }
}

AnyEvaluation EvaluationRun::result() {
  std::optional<AnyEvaluation> all;
  for (int r = 0; r < static_cast<int>(counts_.size()); ++r) try {
      if (!counts_[r]) continue;
      if (all)
        all->merge(*counts_[r]);
      else
        all = counts_[r];
    } catch (...) {  // this replica has predicted other classes since its first batch
      failInBatch(link_ ? std::int64_t{r} * link_->nodes() + link_->node() : r, r);
    }
  if (link_) all = addUpNodes(*exchange_, *link_, failure_.at(), all);
  failure_.rethrow();
  require(all.has_value(), "evaluate: the data set has no batches");
  all->describe(*description_);
  return *std::move(all);
}

std::optional<AnyEvaluation> addUpNodes(Exchange& exchange, const NodeLink& link, std::int64_t failedAt,
                                        const std::optional<AnyEvaluation>& own) {
  struct Report {
    std::int64_t failedAt;
    std::int64_t size;  // of the numbers; 0: none
    std::int64_t task, columns;
  };
  auto numbers = own ? own->toNumbers() : std::vector<std::int64_t>();
  const std::array mine = {Report{failedAt, static_cast<std::int64_t>(numbers.size()),
                                  own ? static_cast<std::int64_t>(own->task()) : 0,
                                  own ? own->columns() : 0}};
  std::vector<Report> all(static_cast<std::size_t>(link.nodes()));
  exchange.allGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));

  const auto first = std::ranges::min_element(all, {}, &Report::failedAt);
  if (first->failedAt < std::numeric_limits<std::int64_t>::max()) {
    const int node = static_cast<int>(first - all.begin());
    if (node == link.node()) return {};
    throw TrainingError(fmt::format("evaluate: {} has failed; its own message says why", link.nameOf(node)),
                        -1, {});
  }
  const auto most = std::ranges::max_element(all, {}, &Report::size);
  for (const Report& one : all)
    require(one.size == 0 || (one.task == most->task && one.columns == most->columns),
            "evaluate: {} predicts other classes than {}", link.nameOf(static_cast<int>(&one - all.data())),
            link.nameOf(static_cast<int>(most - all.begin())));
  if (most->size == 0) return {};
  constexpr std::int64_t kMostNumbers = std::int64_t{1} << 27;  // for each node: 1 GiB
  require(most->size <= kMostNumbers, "evaluate: {} counts {} numbers, and {} are allowed",
          link.nameOf(static_cast<int>(most - all.begin())), most->size, kMostNumbers);

  const auto size = static_cast<std::size_t>(most->size);
  numbers.resize(size);
  std::vector<std::int64_t> counts(size * all.size());
  exchange.allGather(std::as_bytes(std::span(numbers)), std::as_writable_bytes(std::span(counts)));
  std::optional<AnyEvaluation> sum;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (all[n].size == 0) continue;
    const auto part = AnyEvaluation::fromNumbers(
        std::span(counts).subspan(n * size, static_cast<std::size_t>(all[n].size)));
    if (sum)
      sum->merge(part);
    else
      sum = part;
  }
  return sum;
}

}  // namespace muster
