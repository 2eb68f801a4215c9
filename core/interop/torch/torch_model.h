#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/core/data/batch.h"
#include "muster/core/nn/model.h"
#include "muster/core/nn/plan_remark.h"

// This header includes nothing of libtorch, whose headers take long to compile; a program with a module
// includes them anyway.
namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace muster {

/// A batch's tensors for libtorch, valid during the call that got it: on the CPU the same memory, without a
/// copy; for a model on a GPU a copy there.
class TorchBatch {
 public:
  TorchBatch(const Batch& batch, bool training, Device device = Device::cpu())
      : batch_(&batch), training_(training), device_(device) {}

  /// The features, or labels, of this name; without a name the first. Elements keep their type: float32,
  /// float64, uint8, int64. @throws InvalidArgument if there are none.
  at::Tensor features(std::string_view name = {}) const;
  at::Tensor labels(std::string_view name = {}) const;
  /// An undefined tensor if there is none.
  at::Tensor mask(std::string_view name) const;
  std::int64_t examples() const { return batch_->examples(); }
  bool training() const { return training_; }
  const Batch& batch() const { return *batch_; }

 private:
  const Batch* batch_;
  bool training_;
  Device device_;
};

namespace detail {
/// What a TorchModel runs. Results are arguments, because their type is incomplete here.
struct TorchProgram {
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  /// @param weight  comes as the number of examples.
  std::function<void(torch::nn::Module&, const TorchBatch&, at::Tensor& loss, double& weight)> loss;
  std::function<void(torch::nn::Module&, const TorchBatch&, at::Tensor& predictions)> output;  // may be empty
};

template <typename Factory>
using TorchNet = std::remove_reference_t<decltype(*std::declval<Factory&>()())>;
template <typename Output, typename Factory>
concept TorchOutput = std::is_invocable_v < Output&,
        TorchNet<Factory>
&, const TorchBatch& > ;
}  // namespace detail

/// A libtorch module as a muster model, which ParallelWrapper trains with several workers and any rule. An
/// example, and what is merged and frozen how: examples/docs/torch.md.
///
/// Parameters, gradients and floating-point buffers of the module are views of the model's blocks, by the
/// module's names. Updaters, clipping, L2 and schedules are muster's. The factory makes a module for each
/// worker, one at a time: equal in structure, on the CPU, in float32. Each worker calls the loss with its own
/// module on its own thread, so the loss must not write what others read. With dropout and several workers,
/// and on GPUs, the bits may differ in each run.
///
/// Do not give parameters other memory (`to()`, `set_data`, `torch::load`): the next step refuses it by name.
/// After `torch::load` call `adopt()`, which copies the values back; until then training, evaluation and
/// saving are refused.
class TorchModel final : public Model, public PlanRemark {
 public:
  /// @param factory  returns a `std::shared_ptr` of a module, or a holder as `torch::nn::Sequential`.
  /// @param loss  of (Net&, const TorchBatch&): a scalar, the mean over the batch's examples; or a pair of it
  ///         and its weight, if that is not the number of examples.
  /// @throws InvalidArgument naming a parameter that is not float32 on the CPU; for a context on a GPU if
  ///         this libtorch has no CUDA.
  template <typename Factory, typename Loss>
  TorchModel(Factory factory, Loss loss, TrainingOptions options = {}, Context* context = nullptr)
      : TorchModel(programOf<detail::TorchNet<Factory>>(std::move(factory), std::move(loss)),
                   std::move(options), context) {}
  /// @param output  of (Net&, const TorchBatch&): the predictions, `net.forward(batch.features())` without
  /// it.
  template <typename Factory, typename Loss, detail::TorchOutput<Factory> Output>
  TorchModel(Factory factory, Loss loss, Output output, TrainingOptions options = {},
             Context* context = nullptr)
      : TorchModel(
            programOf<detail::TorchNet<Factory>>(std::move(factory), std::move(loss), std::move(output)),
            std::move(options), context) {}
  ~TorchModel() override;

  torch::nn::Module& module();
  /// The module as the factory made it.
  template <typename Net>
  std::shared_ptr<Net> shared() {
    return std::dynamic_pointer_cast<Net>(shared());
  }
  /// Copies the values of parameters and buffers that left the blocks (after `torch::load`) into the
  /// blocks, and makes them views again. @throws InvalidArgument for one of another shape, type or
  /// device.
  void adopt();

  std::unique_ptr<Model> replicate(Context& context) const override;
  /// @throws InvalidArgument naming a parameter or gradient that has left its block; Error with libtorch's
  /// text.
  StepTicket gradient(const Batch& batch) override;
  std::span<StateBlock> blocks() override;
  void output(const Batch& batch, Tensor& out) override;
  using Model::score;
  double score(const Batch& batch) override;
  std::string planRemark() const override;

 private:
  struct Impl;

  TorchModel(detail::TorchProgram program, TrainingOptions options, Context* context);
  std::shared_ptr<torch::nn::Module> shared();

  template <typename Net, typename Factory, typename Loss>
  static detail::TorchProgram programOf(Factory factory, Loss loss) {
    detail::TorchProgram program;
    program.make = [factory = std::move(factory)]() -> std::shared_ptr<torch::nn::Module> {
      auto made = factory();
      if constexpr (requires { made.ptr(); })
        return made.ptr();
      else
        return made;
    };
    program.loss = [loss = std::move(loss)](torch::nn::Module& module, const TorchBatch& batch,
                                            at::Tensor& value, double& weight) {
      auto result = loss(dynamic_cast<Net&>(module), batch);
      if constexpr (requires { result.second; }) {
        value = result.first;
        weight = static_cast<double>(result.second);
      } else {
        value = std::move(result);
      }
    };
    if constexpr (requires(Net & net, const TorchBatch& batch) { net.forward(batch.features()).sizes(); })
      program.output = [](torch::nn::Module& module, const TorchBatch& batch, at::Tensor& predictions) {
        predictions = dynamic_cast<Net&>(module).forward(batch.features());
      };
    return program;
  }
  template <typename Net, typename Factory, typename Loss, typename Output>
  static detail::TorchProgram programOf(Factory factory, Loss loss, Output output) {
    auto program = programOf<Net>(std::move(factory), std::move(loss));
    program.output = [output = std::move(output)](torch::nn::Module& module, const TorchBatch& batch,
                                                  at::Tensor& predictions) {
      predictions = output(dynamic_cast<Net&>(module), batch);
    };
    return program;
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
