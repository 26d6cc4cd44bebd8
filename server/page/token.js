// The token that some daemons require: asked for when it is missing or refused, kept for this tab only, and sent with
// every request.

const KEY = "saccade-token";
const REFUSED = [401, 403];

export const isRefused = (response) => REFUSED.includes(response.status);

export const tokenHeaders = () => {
  const token = sessionStorage.getItem(KEY);
  return token ? {Authorization: `Bearer ${token}`} : {};
};

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

// A missing token is asked for; of others the daemon says what is wrong, which `error` is.
export const refusalOf = (error) => sessionStorage.getItem(KEY) ? `refuses this token: ${error}` : "requires a token";

export function showTokenField(status) {
  document.getElementById("token-field").hidden = !REFUSED.includes(status);
}

// `signal` may be undefined.
export async function ask(path, signal) {
  const response = await fetch(path, {headers: tokenHeaders(), signal});
  showTokenField(response.status);
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
