#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "muster/core/nn/network.h"

namespace muster {

/// A chain of layers and its training options. Names of layers are distinct, in UTF-8 without control
/// characters; a layer without a name is named after its type and number.
struct MultiLayerConfiguration {
  std::uint64_t seed = 0;
  Updater updater = {};
  double l1 = 0, l2 = 0, weightDecay = 0;  ///< see TrainingOptions
  double clipNorm = 0, clipValue = 0;      ///< see TrainingOptions
  std::int64_t accumulate = 1;             ///< batches per step, see TrainingOptions
  Shape inputShape = {};  ///< of one example: [C, H, W], [T, F], [F]; empty: as the first batch; 0: any
  std::vector<Layer> layers = {};

  TrainingOptions trainingOptions() const;
  std::string toJson() const;
  /// @throws InvalidArgument naming the field that is unknown, missing or of the wrong type.
  static MultiLayerConfiguration fromJson(std::string_view json);
};

/// A network that is a chain of layers. `fit` needs an Output as the last layer; a chain without one has no
/// loss, and you run it by `forward` and `backward`, or by `output`.
class MultiLayerNetwork final : public Network {
 public:
  /// @throws InvalidArgument naming the invalid layer or option.
  explicit MultiLayerNetwork(MultiLayerConfiguration configuration);
  /// As above, computing on `context`, which must outlive it.
  MultiLayerNetwork(MultiLayerConfiguration configuration, Context& context);

  const MultiLayerConfiguration& configuration() const { return configuration_; }
  /// A copy with the same state. @throws InvalidArgument before `init()`.
  std::unique_ptr<MultiLayerNetwork> clone();
  /// @throws FileError naming the fault of the file.
  static std::unique_ptr<MultiLayerNetwork> load(const std::filesystem::path& path);
  std::string toJson() const override { return configuration_.toJson(); }

 private:
  std::vector<detail::NetworkInput> inputs() const override;
  detail::NetworkPlan layOut() const override;
  std::vector<detail::NetworkOutline> outline() const override;
  void setInputShapes(std::span<const Shape> shapes) override;
  std::unique_ptr<Network> make(Context* context) const override;

  MultiLayerNetwork(MultiLayerConfiguration configuration, Context* context);

  MultiLayerConfiguration configuration_;
};

}  // namespace muster
