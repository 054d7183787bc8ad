// A certified OpenID Connect provider with four people, for tests in a browser.
// Arguments: folder of node_modules, port, client secret, then the addresses that browsers may be sent back to.
import { pathToFileURL } from "node:url";

const [modules, port, secret, ...origins] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));

const people = {
  alice: { name: "Alice", email: "alice@example.org", email_verified: true, groups: ["red"] },
  bob: { name: "Bob", email: "bob@example.org", email_verified: true, groups: ["blue"] },
  eve: { name: "Eve", email: "eve@example.org", email_verified: false, groups: [] },
};

const provider = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: "raykeeper",
      client_secret: secret,
      token_endpoint_auth_method: "client_secret_post",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: origins.map((origin) => `${origin}/auth/callback`),
      post_logout_redirect_uris: origins.map((origin) => `${origin}/login`),
    },
    {
      client_id: "raykeeper-cli",
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: ["http://127.0.0.1/callback"],
    },
  ],
  claims: { openid: ["sub"], profile: ["name", "groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["cookies of a test"] },
  features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, ...people[sub] }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
});
for (const event of ["grant.success", "grant.error", "grant.revoked", "end_session.success"]) {
  provider.on(event, (ctx, error) => {
    console.log(JSON.stringify({ event, grant: ctx?.oidc?.params?.grant_type, error: error?.error }));
  });
}
provider.listen(Number(port), "127.0.0.1", () => console.log(JSON.stringify({ event: "listening" })));
