#include "muster/parallel/runtime/replica_thread.h"

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/parallel/runtime/peer_sums.h"
#include "muster/parallel/runtime/replica_check.h"

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
