#include "muster/parallel/nodes/node_exchange.h"

#include <algorithm>
#include <utility>

#include "muster/parallel/exchange/tensor_parts.h"
#include "muster/parallel/nodes/node_mixing.h"

namespace muster {

/// What a local participant uses.
struct NodeExchange::Part {
  Part(NodeLink& link, int local, int number, bool hasMoments)
      : channel(kFirstChannel + number), reduction(link, local, channel), beside(link, channel) {
    if (hasMoments) mixing = std::make_unique<NodeMixing>(link, local, channel);
  }

  const int channel;
  NodeReduction reduction;
  std::unique_ptr<NodeMixing> mixing;  // without blocks of rule Moments, made by the first `mix`
  NodeMessages beside;                 // on the reduction's channel, which is used between calls only
  std::unique_ptr<NodeFlight> means;   // null if no means are ever launched
  Flight* flight = nullptr;            // of `means`, or of encoded values; null if nothing is ever launched
  std::int64_t landing = 0;            // launches that this round must land; 0: none
};

NodeExchange::NodeExchange(const std::vector<std::vector<StateBlock*>>& states, UpdaterState updaterState,
                           NodeLink& link, std::optional<HostMirrors::Options> mirroring)
    : Exchange({.participants = static_cast<int>(states.size()) * link.nodes(),
                .node = link.node(),
                .nodes = link.nodes(),
                .senders = link.nodes()},
               {}),
      link_(link),
      local_(static_cast<int>(states.size())),
      mirrors_(mirroring ? std::make_unique<HostMirrors>(states, std::move(*mirroring)) : nullptr),
      sums_(local_),
      encoded_(link, kFirstChannel + 2 * local_),
      gathering_(*this, link, kFirstChannel + 2 * local_ + 2) {
  blocks_ = sharedBlocks(mirrors_ ? mirrors_->states() : states, updaterState,
                         std::vector<std::size_t>(states.size()));
  if (mirrors_) mirrors_->plan(blocks_);
  for (int l = 0; l < local_; ++l) here_.push_back(static_cast<std::size_t>(l * nodes() + node()));
  for (SharedBlock& block : blocks_) spreadOut(block);
  nodeGroup_ = &gathering_;
  const bool moments = std::ranges::find(blocks_, MergeRule::Moments, &SharedBlock::rule) != blocks_.end();
  for (int l = 0; l < local_; ++l) parts_.push_back(std::make_unique<Part>(link, local_, l, moments));
}

NodeExchange::~NodeExchange() {
  encoded_.endFlights();
  for (const auto& mine : parts_) mine->means.reset();  // before the tensors that flights write
  link_.waitIfFailed();
}

void NodeExchange::spreadOut(SharedBlock& block) const {
  const auto count = static_cast<std::size_t>(participants());
  const Tensor& like = block.replicas.front();
  std::vector<Tensor> all(count, Tensor::view(nullptr, like.shape(), like.dtype()));
  for (std::size_t l = 0; l < here_.size(); ++l) all[here_[l]] = block.replicas[l];
  block.replicas = std::move(all);
  if (block.hasMergedCopy()) block.mergedCopies = std::vector<Tensor>(count, block.mergedCopy());
}

std::string NodeExchange::describe(const NodeLink& link, bool mirrored) {
  return fmt::format("merged over {} nodes by {}{}", link.nodes(), link.transport(),
                     mirrored ? ", through host memory" : "");
}

void NodeExchange::restart() {
  link_.requireWhole();
  sums_.beginAll();
  if (mirrors_) mirrors_->load();
  if (!parts_.front()->flight) prepareFlights();
}

/// A strategy with an encoded block calls `allGatherEncoded`; others form means.
void NodeExchange::prepareFlights() {
  const auto flies = [](const StrategyBlock& block) {
    return block.place == StrategyBlock::Place::MergedCopy && block.inFlight && block.saved;
  };
  if (std::ranges::none_of(strategyBlocks(), flies, &StrategyState::declared)) return;
  const bool encoded =
      std::ranges::any_of(strategyBlocks(), &StrategyBlock::encoded, &StrategyState::declared);
  if (encoded) encoded_.allowFlights();
  if (!encoded) sent_ = block(BlockKind::Parameters).replicas;
  for (std::size_t l = 0; l < parts_.size(); ++l) {
    Part& mine = *parts_[l];
    if (!encoded) {
      Tensor& sent = sent_[here_[l]];
      sent = Tensor::empty(sent.shape(), sent.dtype());
      mine.means = std::make_unique<NodeFlight>(link_, local_, mine.channel + local_);
    }
    mine.flight = encoded ? encoded_.flight() : &mine.means->flight();
    gathering_.add(*mine.flight);
  }
}

/// A failure of another node may come in every merge.
std::unique_ptr<MergeUndo> NodeExchange::makeUndo(MergeUndo::Options options) {
  options.everyMerge = options.allState = true;
  return Exchange::makeUndo(options);
}

void NodeExchange::begin(int participant) {
  if (mirrors_) mirrors_->begin(indexOf(participant));
  Part& mine = partAt(participant);
  if (mine.flight) mine.landing = mine.flight->launches();  // this round launches once all have begun
}

void NodeExchange::merge(int participant, const SharedBlock& block, std::span<const double> weights,
                         Context& context, Spread* spread) {
  land(participant);
  Part& mine = partAt(participant);
  const Slice own = ownSlice(participant, block.elementsOfPart());
  if (block.rule == MergeRule::Moments) return mine.mixing->merge(block, weights, own, context);
  if (own.length() == 0) return;
  const Tensor into = block.hasMergedCopy() ? block.mergedCopy() : block.replicas[here_.front()];
  if (!spread) return mine.reduction.run({block.replicas, weights, 0, into, block.replicas}, own, context);
  mine.reduction.run({block.replicas, weights, 0, into, {}}, own, context);
  *spread = spreadAbout(into, block.replicas, weights, here_, own, context);
  if (node() > 0) spread->norm = 0;  // the same mean on all nodes
  for (const std::size_t w : here_) copyOnHost(part(block.replicas[w], own), part(into, own));
}

void NodeExchange::mean(int participant, const SliceMean& mean, Context& context) {
  if (mean.later && launch(participant, mean)) return;
  land(participant);
  const Tensor& into = mean.into.front();
  const Slice own = partOf(mean.slice, into.elements(), localOf(participant), local_);
  partAt(participant).reduction.run({mean.tensors, mean.weights, mean.keep, into, {}}, own, context);
}

bool NodeExchange::launch(int participant, const SliceMean& mean) {
  const auto& tensors = mean.tensors;
  const Tensor& into = mean.into.front();
  const auto fits = [&](std::size_t w) {
    return tensors[w].dtype() == sent_[w].dtype() && tensors[w].elements() == sent_[w].elements();
  };
  if (sent_.empty() || !std::ranges::all_of(here_, fits)) return false;
  land(participant);
  const Slice own = partOf(mean.slice, into.elements(), localOf(participant), local_);
  if (own.length() == 0) return true;
  for (const std::size_t w : here_)
    if (mean.weights[w] > 0) copyOnHost(part(sent_[w], own), part(tensors[w], own));
  partAt(participant).means->launch({sent_, mean.weights, 0, into, {}}, own);
  return true;
}

void NodeExchange::land(int participant) {
  Part& mine = partAt(participant);
  if (const auto launches = std::exchange(mine.landing, 0); launches > 0) mine.flight->land(launches);
}

void NodeExchange::wait() {
  gathering_.awaitLaunched();
  link_.waitIfFailed();
  if (mirrors_) mirrors_->refresh();
}

void NodeExchange::mix(int participant, const SharedBlock& block, const Mixing& mixing, Context& context) {
  land(participant);
  Part& mine = partAt(participant);
  const Slice own = ownSlice(participant, block.elementsOfPart());
  if (block.rule != MergeRule::Moments && !mixing.merged().empty() && block.hasMergedCopy())
    mine.reduction.run({block.replicas, mixing.merged(), 0, block.mergedCopy(), {}}, own, context);
  if (!mine.mixing) mine.mixing = std::make_unique<NodeMixing>(link_, local_, mine.channel);
  mine.mixing->run(block, mixing, own, context);
}

void NodeExchange::allReduce(int participant, std::span<double> values) {
  partAt(participant).beside.sum(values);
  sums_.sum(localOf(participant), values);
}

Tensor NodeExchange::fetch(int participant, std::span<const Tensor> tensors, std::size_t from, std::size_t to,
                           std::span<const Tensor> into, Context&) {
  land(participant);
  if (nodeOf(from) == nodeOf(to)) return tensors[from];
  const Slice own = ownSlice(participant, into[to].elements());
  const Tensor values = isHere(from) ? part(tensors[from], own) : Tensor();
  partAt(participant).beside.copy(values, nodeOf(from), nodeOf(to), part(into[to], own));
  return into[to];
}

void NodeExchange::allGather(int participant, Messages& messages) {
  partAt(participant).beside.allGather(localOf(participant), messages);
  sums_.sum(localOf(participant), {});  // the node's other participants have received theirs, too
}

void NodeExchange::eachShare(int participant, std::int64_t elements, Slice slice, Context& context,
                             const ShareUse& use) {
  land(participant);
  for (int neighbour = 0; neighbour < nodes(); ++neighbour) {
    const Slice own = partOf(slice, elements, localOf(participant) * nodes() + neighbour, participants());
    if (own.length() > 0) use({context, here_, own});
  }
}

void NodeExchange::eachReplica(int participant, std::int64_t elements, Context& context,
                               const ShareUse& use) {
  land(participant);
  const int local = localOf(participant);
  sums_.sum(local, {});  // the others have finished their slices
  use({context, std::span(here_).subspan(static_cast<std::size_t>(local), 1), {0, elements}});
  sums_.sum(local, {});  // and now see this replica's result
}

}  // namespace muster
