#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "muster/parallel/exchange/device_reduction.h"

namespace muster {

/// An exchange for replicas on GPUs. The first participant enqueues everything, for all devices, on the
/// exchange's own streams; the operations of the others do nothing. Events order these streams and the
/// workers' streams: the host waits only for what it reads. One kernel merges the replicas of a device;
/// MergePlan says how devices are merged. On the CPU it does the same synchronously, for tests.
class DeviceExchange final : public Exchange {
 public:
  /// @param states, updaterState  see `sharedBlocks`.
  /// @param refused  [worker] Model::stepRefused of each replica; if it is empty, one tensor is undefined or
  ///                 there are several devices, merges are not guarded.
  /// @param failing  for tests: a transport that fails.
  /// @throws InvalidArgument as `sharedBlocks`; what Context and makeTransport throw.
  DeviceExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                 MergePlan plan, std::vector<Tensor> refused = {}, std::optional<TransportKind> failing = {});

  std::unique_ptr<MergeUndo> makeUndo(MergeUndo::Options options) override;

  void arrive(int participant, Context& context) override {
    arrivals_[static_cast<std::size_t>(participant)].record(context);
  }
  void begin(int participant) override;
  void end(int participant) override;
  void enqueueAfter(int participant, Context& context) override {
    devices_[plan_.groupOf()[static_cast<std::size_t>(participant)]].merged.waitOn(context);
  }
  void wait() override;
  bool whole() const override { return whole_ && !broken_; }
  std::string describe() const override { return plan_.describe(); }
  void abort() noexcept override;
  void restart() override;

  void merge(int participant, const SharedBlock& block, std::span<const double> weights, Context& context,
             Spread* spread) override;
  void mean(int participant, const SliceMean& mean, Context&) override {
    if (participant == 0) reduction_.mean(mean.tensors, mean.weights, mean.keep, mean.slice, mean.into);
  }
  void moments(int participant, const SharedBlock& block, std::span<const double> weights, double keep,
               Context&) override {
    if (participant == 0) reduction_.mergeMoments(block, weights, keep);
  }
  void mix(int participant, const SharedBlock& block, const Mixing& mixing, Context&) override {
    if (participant == 0) reduction_.mix(block, mixing);
  }
  void eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                 const ShareUse& use) override;
  Tensor fetch(int participant, std::span<const Tensor> tensors, std::size_t from, std::size_t to,
               std::span<const Tensor> into, Context& context) override;

 private:
  using Member = DeviceReduction::Member;
  /// Copies on the first device, from which the user's model is filled; the first participant enqueues them.
  /// If merges may overflow, it counts the numbers that are not finite after each, because operations on
  /// devices do not check their results.
  class Undo final : public MergeUndo {
   public:
    Undo(DeviceExchange& devices, const Options& options);
    void keep(int participant) override {
      if (participant == 0 && everyMerge()) keepAll();
    }
    void keepAll() override;
    bool failed() const override { return checks_ && *nonFiniteHere_.data<double>() != 0; }
    bool rollBack() override;

   private:
    friend DeviceExchange;
    void restart();
    /// At the end of a merge: enqueues the count.
    void check();
    void requireFinite() const;

    DeviceExchange& devices_;
    Member& first_;
    Event kept_;                         // recorded when it was copied
    std::atomic<bool> keeping_{false};   // from before the copies until after `kept_` is recorded
    std::atomic<bool> keptWhole_{true};  // the copies were complete before an abort
    const bool checks_;
    Tensor nonFinite_, nonFiniteHere_;  // float64 [1]: elements of the last merge; the second in host memory
  };

  void mergeOnOneDevice(const SharedBlock& block, std::span<const double> weights, Spread* spread);
  /// How far the replicas are from their mean. @param mean  [worker] on its device.
  Spread spreadAbout(std::span<const Tensor> mean, std::span<const Tensor> replicas,
                     std::span<const double> weights);

  MergePlan plan_;
  DeviceReduction reduction_;
  const std::span<Member> devices_;  // of the reduction
  std::vector<double> alone_;        // [worker] weights with which one worker counts
  std::vector<Tensor> refused_;      // [worker] empty if merges are not guarded
  std::vector<Event> arrivals_;      // [worker] recorded by its worker
  // How far the merges are: false between `begin` and `end`; a transfer to the first device was aborted; an
  // abort since the last restart.
  std::atomic<bool> whole_{true}, broken_{false}, aborted_{true};
  Undo* undo_ = nullptr;  // null until it is made
};

}  // namespace muster
