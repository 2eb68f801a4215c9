#include "muster/parallel/runtime/replica_thread.h"

#include "muster/core/base/log.h"
#include "muster/parallel/runtime/peer_sums.h"

namespace muster {
namespace {

bool isPeerFailure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const PeerFailure&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void rethrowInNameOf(const ReplicaThread& thread, std::string_view problem,
                                  const std::exception_ptr& cause) {
  throw TrainingError(fmt::format("{} {}: {}", thread.name(), problem, describe(cause)), thread.index(),
                      cause);
}

void requireSameSegments(const StateBlock& mine, const StateBlock& theirs, std::string_view whose) {
  static const std::vector<Segment> none;
  const auto& a = mine.segments ? mine.segments->segments : none;
  const auto& b = theirs.segments ? theirs.segments->segments : none;
  require(a.size() == b.size(), "its block {} has {} segments, {} {}", mine.name, a.size(), whose, b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    require(a[i].name == b[i].name && a[i].shape == b[i].shape && a[i].offset == b[i].offset,
            "its {} {} in the block {} differs from {} {} {}", a[i].name, a[i].shape.toString(), mine.name,
            whose, b[i].name, b[i].shape.toString());
}

}  // namespace

ReplicaThread::ReplicaThread(std::string_view role, int index, Placement placement, int threads)
    : role_(role),
      index_(index),
      placement_(std::move(placement)),
      threads_(threads),
      thread_(name(), [this] {
        replica_.reset();
        context_.reset();
      }) {}

std::string ReplicaThread::name() const {
  return fmt::format("{} {} on {}", role_, index_, placement_.device.toString());
}

void ReplicaThread::addTo(Tasks& tasks, Activity::Kind kind, std::function<void()> task) {
  tasks.add(thread_, [this, kind, task = std::move(task)] {
    struct IdleAtEnd {
      Activity& activity;
      ~IdleAtEnd() { activity.set(Activity::Kind::Idle); }
    } idle{activity_};
    activity_.set(kind);
    task();
  });
}

void ReplicaThread::makeContext() {
  if (context_) return;
  const auto make = [this](std::vector<int> cores) {
    context_ = std::make_unique<Context>(
        placement_.device,
        ContextOptions{.threads = threads_, .cores = std::move(cores), .mathMode = placement_.mathMode});
  };
  try {
    make(placement_.cores);
  } catch (const InvalidArgument& error) {
    if (placement_.cores.empty()) throw;
    // Cores may be taken from a process while it runs.
    logWarning("{} is not pinned: {}", name(), error.what());
    make({});
  }
}

void ReplicaThread::makeReplica(const Model& model) {
  makeContext();
  replica_ = model.replicate(*context_);
  require(replica_ != nullptr, "the model's replicate() returned nothing");
  replica_->followLearningRate(model);
}

void runOnAll(std::span<ReplicaThread* const> threads, std::string_view problem,
              const std::function<void(ReplicaThread&)>& task) {
  Tasks tasks;
  for (auto* thread : threads)
    thread->addTo(tasks, Activity::Kind::Replicating, [&task, thread] {
      task(*thread);
      thread->context().synchronize();
    });
  tasks.start();
  const auto failures = tasks.failures();
  for (const bool ofPeers : {false, true})
    for (std::size_t t = 0; t < failures.size(); ++t)
      if (failures[t] && isPeerFailure(failures[t]) == ofPeers)
        rethrowInNameOf(*threads[t], problem, failures[t]);
}

std::vector<StateBlock*> blocksOf(Model& model) {
  std::vector<StateBlock*> all;
  for (auto& block : model.blocks()) all.push_back(&block);
  return all;
}

void requireCopy(std::span<StateBlock* const> replica, std::span<StateBlock* const> other,
                 std::string_view whose) {
  require(replica.size() == other.size(), "it has {} blocks, {} {}", replica.size(), whose, other.size());
  for (std::size_t b = 0; b < replica.size(); ++b) {
    const StateBlock &mine = *replica[b], &theirs = *other[b];
    const Tensor &x = mine.values, &y = theirs.values;
    require(mine.name == theirs.name && mine.kind == theirs.kind && x.shape() == y.shape() &&
                x.dtype() == y.dtype(),
            "its block {}, {}, differs from {} {}, {}", mine.name, x.toString(), whose, theirs.name,
            y.toString());
    requireSameSegments(mine, theirs, whose);
    require(!shareMemory(x, y), "its block {} shares memory with {}; replicate() must make a copy", mine.name,
            whose);
  }
}

void requireCopies(std::span<ReplicaThread* const> threads, Model& model,
                   const std::function<std::vector<StateBlock*>(Model&)>& blocksOf) {
  for (std::size_t t = 0; t < threads.size(); ++t) try {
      const auto blocks = blocksOf(threads[t]->replica());
      requireCopy(blocks, blocksOf(model), "the model's");
      for (auto* other : threads.first(t))
        requireCopy(blocks, blocksOf(other->replica()),
                    fmt::format("{} {}'s", other->role(), other->index()));
    } catch (...) {
      rethrowInNameOf(*threads[t], "could not be made", std::current_exception());
    }
}

}  // namespace muster
