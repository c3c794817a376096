/** The extension's only way in: its button opens the page, which is the device as long as it is open. */

/** What is used of the browser's interface for extensions. */
declare const chrome: {
  readonly action: { readonly onClicked: { addListener(does: () => void): void } };
  readonly tabs: { create(tab: { readonly url: string }): Promise<unknown> };
};

chrome.action.onClicked.addListener(() => void chrome.tabs.create({ url: "index.html" }));
