// How to ask whether an experiment is to be cancelled. Pure.

/** The question with its two answers; see `Question`. */
export function endQuestion({ noun, title }) {
  const text = `Cancel ${title} for good? Its runs stop; those that train leave a checkpoint. What it has found so far stays, but it cannot be resumed.`;
  return { text, yes: `Cancel this ${noun}`, no: "Let it go on" };
}
