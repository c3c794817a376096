/** What is behind the first view of the page, as one part: the page loads it when typing works. */

export { overview, pause, randomShare, takeTurn } from "./device.ts";
export { joinForm, whyUnread } from "./joining.ts";
export { policyForm } from "./rules.ts";
export { showBudget, showJournal, showTexts, showTurn } from "./views.ts";
