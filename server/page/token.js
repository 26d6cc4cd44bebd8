// The token that some daemons require: asked for when it is missing or refused, kept for this tab only, and sent with
// every request.

const KEY = "saccade-token";
const REFUSED = [401, 403];

export const isRefused = (response) => REFUSED.includes(response.status);

export async function ask(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = {...options.headers, ...(token ? {Authorization: `Bearer ${token}`} : {})};
  const response = await fetch(path, {...options, headers});
  document.getElementById("token-field").hidden = !isRefused(response);
  return response;
}

// `changed` is called after each new token.
export function takeToken(changed) {
  document.getElementById("token").onchange = (event) => {
    sessionStorage.setItem(KEY, event.target.value.trim());
    event.target.value = "";
    changed();
  };
}
