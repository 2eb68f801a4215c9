#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "muster/core/backend/cpu/onednn.h"

namespace muster::cpu {

/// One primitive, with conversions between the caller's formats and its own. If they differ, a copy is
/// reordered before or after it. Copies and scratch memory are in the context's workspace.
class Pass {
 public:
  Pass(const dnnl::primitive_desc& desc, const dnnl::primitive& primitive, State& state)
      : state_(state), main_(primitive, state) {
    scratch(main_, desc.scratchpad_desc());
  }

  /// Copies the caller's tensor to the primitive's format, or back; empty: use oneDNN's reorder.
  using Copy = std::function<void(const void* from, void* to)>;

  void input(int argument, const dnnl::memory::desc& given, const dnnl::memory::desc& wanted,
             Copy copy = {}) {
    slots_.push_back(given == wanted ? Slot{&main_, main_.add(argument, wanted)}
                     : copy          ? ownCopy(copiesBefore_, argument, wanted, std::move(copy), true)
                                     : reorder(before_, argument, given, wanted, true));
  }
  void output(int argument, const dnnl::memory::desc& given, const dnnl::memory::desc& made, Copy copy = {}) {
    slots_.push_back(given == made ? Slot{&main_, main_.add(argument, made)}
                     : copy        ? ownCopy(copiesAfter_, argument, made, std::move(copy), false)
                                   : reorder(after_, argument, given, made, false));
  }

  /// `data` is in the order in which inputs and outputs were added.
  void run(std::initializer_list<void*> data) {
    auto slot = slots_.begin();
    for (void* pointer : data) (slot++)->bind(pointer);
    for (const auto& [place, offset] : places_) place.bind(state_.workspace.data() + offset);
    for (auto& execution : before_) execution->run();
    for (auto& own : copiesBefore_) own->copy(own->from, own->to);
    main_.run();
    for (auto& execution : after_) execution->run();
    for (auto& own : copiesAfter_) own->copy(own->from, own->to);
  }

 private:
  struct Slot {  // an argument to bind to an address
    Execution* execution;
    std::size_t index;
    void** pointer = nullptr;  // an OwnCopy's pointer; if set, replaces `execution`

    void bind(void* data) const {
      if (pointer)
        *pointer = data;
      else
        execution->bind(index, data);
    }
  };
  struct OwnCopy {
    Copy copy;
    void* from = nullptr;
    void* to = nullptr;
  };
  using OwnCopies = std::vector<std::unique_ptr<OwnCopy>>;
  using Executions = std::vector<std::unique_ptr<Execution>>;

  Slot ownCopy(OwnCopies& list, int argument, const dnnl::memory::desc& inside, Copy copy, bool before) {
    const std::size_t inner = place(inside.get_size());
    places_.push_back({{&main_, main_.add(argument, inside)}, inner});
    OwnCopy& own = *list.emplace_back(std::make_unique<OwnCopy>(OwnCopy{std::move(copy)}));
    places_.push_back({{nullptr, 0, before ? &own.to : &own.from}, inner});
    return {nullptr, 0, before ? &own.from : &own.to};
  }

  Slot reorder(Executions& list, int argument, const dnnl::memory::desc& given,
               const dnnl::memory::desc& inside, bool before) {
    const std::size_t copy = place(inside.get_size());
    places_.push_back({{&main_, main_.add(argument, inside)}, copy});
    const dnnl::memory::desc& from = before ? given : inside;
    const dnnl::memory::desc& to = before ? inside : given;
    const dnnl::reorder::primitive_desc desc(state_.engine, from, state_.engine, to, attributes());
    Execution& execution = *list.emplace_back(std::make_unique<Execution>(dnnl::reorder(desc), state_));
    scratch(execution, desc.scratchpad_desc());
    const Slot source{&execution, execution.add(DNNL_ARG_FROM, from)};
    const Slot target{&execution, execution.add(DNNL_ARG_TO, to)};
    places_.push_back({before ? target : source, copy});
    return before ? source : target;
  }

  void scratch(Execution& execution, const dnnl::memory::desc& desc) {
    places_.push_back({{&execution, execution.add(DNNL_ARG_SCRATCHPAD, desc)}, place(desc.get_size())});
  }

  /// Reserves `bytes` of the workspace, aligned to a cache line. @return their offset.
  std::size_t place(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ = (offset + bytes + kLine - 1) / kLine * kLine;
    state_.workspace.reserve(bytes_);
    return offset;
  }

  static constexpr std::size_t kLine = 64;

  State& state_;
  Execution main_;
  std::size_t bytes_ = 0;  // of the workspace
  Executions before_, after_;
  OwnCopies copiesBefore_, copiesAfter_;
  std::vector<Slot> slots_;                           // [argument of run]
  std::vector<std::pair<Slot, std::size_t>> places_;  // slots in the workspace, and their offsets
};

}  // namespace muster::cpu
